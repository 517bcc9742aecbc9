// What two runs of a network tell of its nodes: borders where they differ, and lines for the panel.

import { element } from "./elements.js";

// Accuracy and performance have two borders, performance alone a yellow one.
const BORDERS = { accuracy: ["#dc2626"], performance: ["#d9a400"], "accuracy and performance": ["#ea7317", "#dc2626"] };
const WIDTH = 3.5;

// Nodes that differ are among those that the arrows lead to.
export function takeMarks(pane) {
  for (const [node, mark] of Object.entries(pane.marks)) {
    if (mark.kinds.length) pane.differences.set(Number(node), [mark.kinds.join(" and ")]);
  }
}

export function paintMarks(pen, pane, item, scale) {
  for (const { colour, width, out } of marksOf(pane, item.id, scale)) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.strokeRect(item.x - out, item.y - out, item.width + 2 * out, item.height + 2 * out);
  }
}

// The borders of a node, the innermost first, and how far out each runs; a closed group has those of its nodes.
export function marksOf(pane, item, scale = 1) {
  if (!pane.isMarked) return [];
  const kinds = new Set(pane.tree.nodesIn(item).flatMap((node) => pane.marks[node]?.kinds || []));
  const width = Math.max(WIDTH, 1.5 / scale);
  return (BORDERS[[...kinds].sort().join(" and ")] || []).map((colour, index) => ({ colour, width, out: width * (0.5 + index) }));
}

// The lines about a node, or nothing where no run told of it.
export const markLines = (pane, node) => (pane.marks[node]?.lines || []).map((line) => element("div", line));
