// What differs between panes that stand side by side, and which node of one is which of the next.

import { byId } from "./elements.js";
import { takeMarks } from "./run_marks.js";
import { drawAll, selected, state } from "./state.js";

let partners = []; // for each pair of panes two maps: forth and back

export function takeDifferences(diffs) {
  partners = diffs.map((diff) => {
    const maps = [new Map(), new Map()];
    for (const [a, b] of [...diff.pairs, ...(diff.links || [])]) {
      if (!maps[0].has(a)) maps[0].set(a, b);
      if (!maps[1].has(b)) maps[1].set(b, a);
    }
    return maps;
  });
  state.panes.forEach((pane) => pane.differences.clear());
  diffs.forEach((diff, index) => {
    Object.entries(diff.left).forEach(([node, why]) => state.panes[index].differences.set(Number(node), why));
    Object.entries(diff.right).forEach(([node, why]) => state.panes[index + 1].differences.set(Number(node), why));
  });
  state.panes.forEach(takeMarks);
  const any = diffs.some((diff) => !diff.one_file) || state.panes.some((pane) => pane.differences.size);
  byId("diff-tools").hidden = !any;
  byId("diff-count").textContent = any ? `${stops().length} differences` : "";
}

// The other panes go to the node that this one became, or was.
export function followElsewhere(pane, item) {
  const nodes = item < 0 ? [] : pane.tree.nodesIn(item);
  for (const step of [1, -1]) follow(pane.index, nodes, step, { pane, item, closed: pane.tree.isGroup(item) });
}

function follow(index, nodes, step, chosen) {
  const other = state.panes[index + step];
  const map = step > 0 ? partners[index]?.[0] : partners[index - 1]?.[1];
  if (!other || !map) return;
  const found = nodes.map((node) => map.get(node)).filter((node) => node !== undefined);
  other.selected = found.length ? (chosen.closed ? other.tree.shown(found[0]) : found[0]) : -1;
  if (!found.length) return;
  if (!other.box.hidden) other.showBeside(other.selected, chosen.pane, chosen.item);
  follow(index + step, found, step, chosen);
}

// Each difference once: what is added or changed in a pane, and what the next one has no more.
function stops() {
  const found = [];
  for (const pane of state.panes) {
    for (const [node, [kind]] of pane.differences) {
      const before = partners[pane.index - 1]?.[1];
      const told = kind === "changed" && pane.index < state.panes.length - 1 && !(before && before.has(node));
      if (!told) found.push([pane, node]);
    }
  }
  return found.sort((a, b) => place(a) - place(b) || a[0].index - b[0].index || a[1] - b[1]);
}

// How far down the graph a node stands, as a share, so that the panes are walked through together.
const place = ([pane, node]) => pane.depths[node] / pane.deepest;

let at = -1;

export function nextDifference(step) {
  const all = stops();
  if (!all.length) return;
  at = (((at < 0 && step < 0 ? 0 : at) + step) % all.length + all.length) % all.length;
  const [pane, node] = all[at];
  byId("diff-count").textContent = `${at + 1} of ${all.length}`;
  pane.show(node, true);
  selected(pane, node);
}

// With only what differs, the groups without differences are closed and all others open.
export function showOnlyChanged(only) {
  state.only = only;
  for (const pane of state.panes) {
    if (only && pane.differences.size) {
      pane.tree.closeAll();
      for (const node of pane.differences.keys()) pane.tree.reveal(node);
      pane.arrange();
      pane.fit();
    }
  }
  drawAll();
}

export const startOver = () => (at = -1);
