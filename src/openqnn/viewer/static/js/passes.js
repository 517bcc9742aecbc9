// The pass explorer: each pass with what it did and what it declined, and the graph before and after it.

import { button, byId, element } from "./elements.js";
import { selected, state } from "./state.js";

let steps = [];
let show = null;
let current = -1;

// `showPanes` puts two of the page's graphs beside each other.
export function startPasses(passes, showPanes) {
  steps = passes;
  show = showPanes;
  byId("passes").hidden = false;
  document.body.classList.add("with-passes");
  byId("passes").replaceChildren(element("h2", "Passes"), list());
  choose(Math.max(0, steps.findIndex((step) => step.after !== step.before)));
}

function list() {
  const made = element("ol");
  steps.forEach((step, index) => {
    const row = element("li");
    const name = button(step.name, () => choose(index), step.why);
    const done = step.events.filter((each) => each.applied).length;
    const counts = [done && `${done} applied`, step.events.length - done && `${step.events.length - done} declined`].filter(Boolean);
    name.append(element("span", counts.join(", ") || "nothing to do", "dim"));
    row.append(name);
    made.append(row);
  });
  return made;
}

export function choose(index) {
  if (index < 0 || index >= steps.length) return;
  current = index;
  const step = steps[index];
  byId("passes").querySelectorAll("li").forEach((row, at) => {
    row.querySelector("button").setAttribute("aria-pressed", String(at === index));
    row.querySelector(".events")?.remove();
    if (at === index) row.append(events(step));
  });
  byId("passes").querySelectorAll("li")[index].scrollIntoView({ block: "nearest" });
  show([step.before, step.after], [`before ${step.name}`, `after ${step.name}`]);
}

export const nextPass = (by) => choose(current + by);

function events(step) {
  const made = element("div", undefined, "events");
  made.append(element("p", step.why, "note"));
  step.events.forEach((event) => made.append(eventRow(event)));
  return made;
}

function eventRow(event) {
  const row = element("button", undefined, event.applied ? "applied" : "declined");
  row.type = "button";
  row.append(element("b", `${event.applied ? "applied" : "declined"} ${event.pass}`), element("span", event.where));
  if (event.reason) row.append(element("em", event.reason));
  row.addEventListener("click", () => goTo(event.node));
  return row;
}

// To the node as it was; one that the pass made is only in the graph after it.
function goTo(name) {
  for (const pane of state.panes) {
    const node = pane.nodes.findIndex((each) => each.name === name || each.outputs.some((tensor) => tensor.name === name));
    if (node < 0) continue;
    pane.show(node);
    return selected(pane, node);
  }
}
