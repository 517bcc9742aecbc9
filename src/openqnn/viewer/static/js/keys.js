// The keyboard: on a graph, and on the whole page.

import { byId } from "./elements.js";
import { nextDifference } from "./differences.js";
import { nextWorst } from "./overlays.js";
import { selected, state } from "./state.js";

const STEP = 120; // pixels that the view moves

export function listenToGraph(pane) {
  pane.canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = event.shiftKey ? { ...panning(pane), "+": () => pane.zoom(1.25), "*": () => openAll(pane) } : {
      ArrowDown: () => along(pane, pane.readers, 1), ArrowUp: () => along(pane, pane.makers, -1),
      ArrowRight: () => beside(pane, 1), ArrowLeft: () => beside(pane, -1),
      "+": () => pane.zoom(1.25), "=": () => pane.zoom(1.25), "-": () => pane.zoom(0.8),
      Enter: () => enter(pane), " ": () => enter(pane), Backspace: () => outwards(pane), Escape: () => selected(pane, -1),
      Home: () => go(pane, 0), End: () => go(pane, pane.nodes.length - 1),
      PageDown: () => pane.pan(0, -pane.height * 0.8), PageUp: () => pane.pan(0, pane.height * 0.8),
      "*": () => openAll(pane), "_": () => closeAll(pane), c: () => closeAll(pane), o: () => openAll(pane),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
}

const panning = (pane) => ({
  ArrowDown: () => pane.pan(0, -STEP), ArrowUp: () => pane.pan(0, STEP), ArrowLeft: () => pane.pan(STEP, 0), ArrowRight: () => pane.pan(-STEP, 0),
});

function go(pane, item) {
  const shown = pane.tree.shown(item);
  pane.show(shown);
  selected(pane, shown);
}

// To what reads the item's results, or to what it reads: the one that stands nearest.
function along(pane, neighbours, step) {
  if (pane.selected < 0) return go(pane, 0);
  const own = new Set(pane.tree.nodesIn(pane.selected));
  const next = [...own].flatMap((node) => neighbours[node]).filter((node) => !own.has(node)).map((node) => pane.tree.shown(node));
  const here = pane.scene.at.get(pane.tree.shown(pane.selected));
  const far = (item) => {
    const there = pane.scene.at.get(item);
    return Math.hypot(there.x + there.width / 2 - here.x - here.width / 2, (there.y - here.y) * 2) + ((there.y - here.y) * step < 0 ? 1e6 : 0);
  };
  if (next.length) go(pane, next.reduce((best, each) => (far(each) < far(best) ? each : best)));
}

// To the next item on the same height.
function beside(pane, step) {
  if (pane.selected < 0) return go(pane, 0);
  const here = pane.scene.at.get(pane.tree.shown(pane.selected));
  const middle = (item) => item.y + item.height / 2;
  const near = pane.scene.items.filter((item) => !item.open && item !== here && (item.x - here.x) * step > 0 && Math.abs(middle(item) - middle(here)) < 90);
  const far = (item) => Math.abs(item.x - here.x) + 3 * Math.abs(middle(item) - middle(here));
  if (near.length) go(pane, near.reduce((best, each) => (far(each) < far(best) ? each : best)).id);
}

function enter(pane) {
  if (pane.selected < 0) return go(pane, 0);
  if (pane.tree.isGroup(pane.selected)) pane.toggle(pane.selected);
  else byId("panel").focus();
}

// To the group around the item, which closes; so the way back is Enter.
function outwards(pane) {
  const [group] = pane.tree.around(pane.selected);
  if (group === undefined) return selected(pane, -1);
  pane.rearrange(() => pane.tree.open.delete(group), group);
  go(pane, group);
}

export function openAll(pane) {
  pane.rearrange(() => pane.tree.openAll());
}

export function closeAll(pane) {
  pane.rearrange(() => pane.tree.closeAll());
}

export function listenToPage(more) {
  document.addEventListener("keydown", (event) => {
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox") return;
    if (byId("help").open) return;
    const keys = { "/": () => byId("find").focus(), n: () => nextDifference(1), p: () => nextDifference(-1), w: () => nextWorst(),
      0: () => state.panes.forEach((pane) => pane.fit()), "?": () => byId("help").showModal(), ...more };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
}
