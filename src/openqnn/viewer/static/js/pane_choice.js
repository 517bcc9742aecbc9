// Which of several graphs stand beside each other: as many as there is room for, and more or others by a click.

import { byId, element } from "./elements.js";
import { onReveal, say, state } from "./state.js";

const LEAST = 300; // pixels that a graph needs

// At the start those that fit, two at least: what differs is seen between two.
export function startChoice() {
  const room = Math.max(2, Math.floor(byId("panes").clientWidth / LEAST));
  const several = state.panes.length > 2;
  byId("choice").hidden = !several;
  byId("choice").replaceChildren(element("strong", "Graphs"), ...(several ? state.panes.map(boxOf) : []));
  state.panes.forEach((pane, index) => setShown(pane, index < room || !several));
}

function boxOf(pane) {
  const label = element("label");
  const box = element("input");
  box.type = "checkbox";
  box.dataset.pane = pane.index;
  box.addEventListener("change", () => setShown(pane, box.checked));
  label.append(box, " ", pane.title);
  return label;
}

// One graph stays at least.
export function setShown(pane, shown) {
  const others = state.panes.some((each) => each !== pane && !each.box.hidden);
  if (!shown && !others) say("one graph stays");
  pane.box.hidden = !shown && others;
  const box = byId("choice").querySelector(`[data-pane="${pane.index}"]`);
  if (box) box.checked = !pane.box.hidden;
  if (!pane.box.hidden) pane.resize();
}

onReveal((pane) => setShown(pane, true));
