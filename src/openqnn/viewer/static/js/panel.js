// What is known of the chosen node, group or graph.

import { button, byId, element, list, number } from "./elements.js";
import { markLines } from "./run_marks.js";
import { say, selected, state } from "./state.js";
import { weightBox } from "./weights.js";

const MOST = 40; // rows of a list

export function describe(pane, item) {
  const panel = byId("panel");
  panel.replaceChildren();
  panel.scrollTop = 0;
  if (item < 0) return describeGraph(panel, pane);
  panel.append(path(pane, item));
  if (pane.tree.isGroup(item)) describeGroup(panel, pane, item);
  else describeNode(panel, pane, item);
  say(`${pane.nameOf(item)}: ${panel.querySelector("dd")?.textContent || ""}`);
}

function section(panel, title, ...parts) {
  if (parts.length) panel.append(element("h3", title), ...parts);
}

const jump = (pane, item, text) => button(text ?? pane.nameOf(item), () => {
  pane.show(item);
  selected(pane, item);
});

// The groups around an item, the outermost first.
function path(pane, item) {
  const made = element("nav", undefined, "path");
  made.setAttribute("aria-label", "Groups around it");
  made.append(button(pane.title, () => selected(pane, -1)));
  for (const group of pane.tree.around(item).reverse()) made.append(" / ", jump(pane, group, pane.tree.group(group).name));
  return made;
}

function describeGraph(panel, pane) {
  panel.append(element("h2", pane.title), list([["kind", pane.kind], ...Object.entries(pane.facts)]));
  const kinds = new Set(pane.nodes.map((node) => node.op)).size; // in a list, times of its nodes are no kinds
  if (pane.edges.length || kinds * 4 <= pane.nodes.length) section(panel, "Kinds of nodes", opCounts(pane, pane.nodes.map((_, node) => node)));
  section(panel, "Differences", ...differenceCounts(pane));
}

function opCounts(pane, nodes) {
  const counts = new Map();
  nodes.forEach((node) => counts.set(pane.nodes[node].op, (counts.get(pane.nodes[node].op) || 0) + 1));
  return list([...counts].sort((a, b) => b[1] - a[1]).slice(0, MOST).map(([op, count]) => [op, String(count)]));
}

function differenceCounts(pane) {
  const counts = new Map();
  for (const [kind] of pane.differences.values()) counts.set(kind, (counts.get(kind) || 0) + 1);
  return [...counts].map(([kind, count]) => element("div", `${count} ${kind}`, kind));
}

function describeGroup(panel, pane, item) {
  const group = pane.tree.group(item);
  const nodes = pane.tree.nodesIn(item);
  panel.append(element("h2", pane.nameOf(item)));
  const facts = [["nodes", String(group.size)]];
  if (group.repeat) facts.unshift(["repeats", `${group.repeat} times ${group.size / group.repeat} nodes`]);
  panel.append(list(facts), button(pane.tree.open.has(item) ? "Close group" : "Open group", () => {
    pane.toggle(item);
    describe(pane, item);
  }, "Key: Enter"));
  section(panel, "Sums and extremes", ...[overlaySums(pane, nodes)].filter(Boolean));
  section(panel, "Kinds of nodes", opCounts(pane, nodes));
}

function overlaySums(pane, nodes) {
  const rows = [];
  for (const overlay of pane.overlays) {
    const values = nodes.map((node) => overlay.values[pane.nodes[node].name]).filter(Number.isFinite);
    if (!values.length) continue;
    const sum = values.reduce((a, b) => a + b, 0);
    const ends = [Math.min(...values), Math.max(...values)];
    rows.push([overlay.title, `${number(ends[0])} to ${number(ends[1])} ${overlay.unit}, sum ${number(sum)}`]);
  }
  return rows.length ? list(rows) : null;
}

function describeNode(panel, pane, item) {
  const node = pane.nodes[item];
  panel.append(element("h2", node.name));
  // In a list it may be a time or a type that stands in the place of the op; both are told below.
  const facts = isOp(pane) ? [["op", node.op]] : [];
  if (node.source) facts.push(["source", node.source]);
  panel.append(list(facts));
  section(panel, "Program", ...(node.places || []).map((line) => element("code", line, "line")));
  const told = markLines(pane, item);
  section(panel, "DIFF", ...told);
  const difference = told.length ? null : pane.differences.get(item);
  if (difference) section(panel, "Difference", element("div", difference[0], difference[0]), ...difference.slice(1).map((line) => element("div", line)));
  section(panel, "Numbers", ...overlayRows(pane, node));
  const params = Object.entries(node.params);
  if (params.length) section(panel, "Parameters", list(params));
  section(panel, "Inputs", ...node.inputs.map((tensor) => tensorBox(pane, tensor, makersOf(pane, item, tensor), "from")));
  section(panel, "Outputs", ...node.outputs.map((tensor) => tensorBox(pane, tensor, readersOf(pane, item, tensor), "to")));
}

const isOp = (pane) => pane.edges.length > 0 || !["profiling log", "encodings file"].includes(pane.kind);

function overlayRows(pane, node) {
  const rows = [];
  const notes = [];
  for (const overlay of pane.overlays) {
    const value = overlay.values[node.name];
    if (value !== undefined && value !== null) rows.push([overlay.title, `${number(value)} ${overlay.unit}`]);
    if (overlay.labels?.[node.name]) rows.push([overlay.title, overlay.labels[node.name]]);
    const note = overlay.notes?.[node.name];
    if (note && !notes.some((each) => each.textContent === note)) notes.push(element("p", note, "note"));
  }
  return rows.length ? [list(rows), ...notes] : notes;
}

const makersOf = (pane, item, tensor) => pane.makers[item].filter((node) => pane.nodes[node].outputs.some((each) => each.name === tensor.name));
const readersOf = (pane, item, tensor) => pane.readers[item].filter((node) => pane.nodes[node].inputs.some((each) => each.name === tensor.name));

function tensorBox(pane, tensor, others, word) {
  const box = element("div", undefined, "tensor");
  box.append(element("div", tensor.name, "name"), element("code", tensor.shape ? `${tensor.dtype} [${tensor.shape.join(", ")}]` : `${tensor.dtype || "type"}${tensor.dtype ? "," : " and"} shape not in the file`));
  if (tensor.encoding) box.append(element("div", tensor.encoding, "dim"));
  if (tensor.origin) box.append(element("div", `encoding from: ${tensor.origin}`, "dim"));
  if (others.length) {
    const links = element("div", `${word} `, "dim");
    [...new Set(others)].slice(0, MOST).forEach((node) => links.append(jump(pane, node), " "));
    box.append(links);
  }
  box.append(weightBox(tensor, pane.number));
  return box;
}

export const describeFirst = () => state.panes.length && describe(state.panes[0], -1);
