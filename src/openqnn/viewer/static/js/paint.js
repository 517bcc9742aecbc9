// Drawing what is in view: groups behind, lines, then nodes.

import { shortened } from "./elements.js";
import { overlayColour } from "./overlays.js";
import { trace } from "./places.js";
import { paintMarks } from "./run_marks.js";
import { state } from "./state.js";
import { colourOfOp, inkOn, themeColours } from "./theme.js";

const FAR = 0.34; // below this scale nodes have no text
const FARTHEST = 0.12; // and below this one no borders and no curves
const ROUND = 6;

// The colour of an item: its kind, or the number that the first overlay has for it; "" where there is none.
export function fillOf(pane, item) {
  if (state.overlays.length) return overlayColour(pane, item, 0);
  if (!pane.tree.isGroup(item)) return colourOfOp(pane.nodes[item].op);
  return "";
}

export function paintScene(pen, pane, view) {
  const colours = themeColours();
  const seen = (x0, y0, x1, y1) => x1 > view.left && x0 < view.right && y1 > view.top && y0 < view.bottom;
  const items = pane.scene.items.filter((item) => seen(item.x, item.y, item.x + item.width, item.y + item.height));
  pen.textBaseline = "middle";
  for (const item of items) if (item.open) paintOpen(pen, pane, item, colours, view);
  paintLines(pen, pane, view, colours, seen);
  for (const item of items) if (!item.open) paintItem(pen, pane, item, colours, view.scale);
  pen.globalAlpha = 1;
}

function paintOpen(pen, pane, item, colours, view) {
  pen.fillStyle = colours.group;
  pen.strokeStyle = item.id === pane.selected ? colours.mark : colours.edge;
  pen.lineWidth = item.id === pane.selected ? 3 : 1;
  outline(pen, item, view.scale);
  pen.fill();
  pen.stroke();
  if (view.scale <= FAR) return;
  const group = pane.tree.group(item.id);
  pen.fillStyle = colours.dim;
  pen.font = "600 12px system-ui, sans-serif";
  pen.textAlign = "left";
  // The name stays in view while the group's head is above it, below those of the groups around.
  const above = view.top + (4 / view.scale) + 18 * pane.tree.around(item.id).length;
  const y = Math.min(Math.max(item.y, above) + 14, item.y + item.height - 14);
  pen.fillText(`\u2212  ${shortened(group.name, Math.max(8, Math.floor(item.width / 7.5) - 6))}${group.repeat ? `  x${group.repeat}` : ""}`, item.x + 9, y);
}

function outline(pen, item, scale) {
  pen.beginPath();
  if (scale > FARTHEST) pen.roundRect(item.x, item.y, item.width, item.height, ROUND);
  else pen.rect(item.x, item.y, item.width, item.height);
}

function paintLines(pen, pane, view, colours, seen) {
  const chosen = pane.scene.at.has(pane.selected) ? new Set([pane.selected]) : new Set();
  const marked = [];
  pen.globalAlpha = state.hits || state.only ? 0.4 : 1;
  pen.strokeStyle = colours.edge;
  pen.lineWidth = Math.max(1.2, Math.min(3, 0.6 / view.scale));
  pen.beginPath();
  for (const line of pane.scene.lines) {
    if (!seen(line.x0 - 1, line.y0, line.x1 + 1, line.y1)) continue;
    if (chosen.has(line.from) || chosen.has(line.to)) marked.push(line);
    else trace(pen, line, view.scale > FARTHEST);
  }
  pen.stroke();
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.mark;
  pen.lineWidth = Math.max(2, 1.4 / view.scale);
  pen.beginPath();
  marked.forEach((line) => trace(pen, line, view.scale > FARTHEST));
  pen.stroke();
}

export function differenceOf(pane, item) {
  if (!pane.tree.isGroup(item)) return pane.differences.get(item)?.[0] || "";
  if (!pane.differences.size) return "";
  const kinds = new Set(pane.tree.nodesIn(item).map((node) => pane.differences.get(node)?.[0]).filter(Boolean));
  return kinds.size > 1 ? "changed" : [...kinds][0] || "";
}

function paintItem(pen, pane, item, colours, scale) {
  const isGroup = pane.tree.isGroup(item.id);
  const fill = fillOf(pane, item.id);
  const difference = differenceOf(pane, item.id);
  const chosen = item.id === pane.selected;
  pen.globalAlpha = pane.isFaded(item.id) ? 0.2 : 1;
  pen.fillStyle = fill || colours.card;
  pen.strokeStyle = chosen ? colours.mark : difference ? colours[difference] || colours.line : colours.line;
  pen.lineWidth = chosen || difference ? Math.max(3, 1.5 / scale) : 1;
  if (scale <= FARTHEST) {
    pen.fillRect(item.x, item.y, item.width, item.height);
    if (chosen || difference) pen.strokeRect(item.x, item.y, item.width, item.height);
    paintMarks(pen, pane, item, scale);
    return;
  }
  if (isGroup) paintStack(pen, item);
  outline(pen, item, scale);
  pen.fill();
  pen.stroke();
  paintMarks(pen, pane, item, scale);
  if (state.overlays.length > 1) paintStrips(pen, pane, item);
  if (scale > FAR) paintText(pen, pane, item, fill ? inkOn(fill) : colours.ink, isGroup);
}

// A closed group looks like several cards.
function paintStack(pen, item) {
  for (const step of [6, 3]) {
    pen.beginPath();
    pen.roundRect(item.x + step, item.y + step, item.width, item.height, ROUND);
    pen.fill();
    pen.stroke();
  }
}

function paintStrips(pen, pane, item) {
  for (const strip of stripsOf(pane, item)) {
    pen.fillStyle = themeColours().card; // a strip is seen on any fill
    pen.fillRect(strip.x - 1, strip.y - 1, strip.width + 2, strip.height + 2);
    pen.fillStyle = strip.colour;
    pen.fillRect(strip.x, strip.y, strip.width, strip.height);
  }
}

// Further overlays are strips along the lower edge.
export function stripsOf(pane, item) {
  const rest = state.overlays.slice(1);
  const width = (item.width - 12) / rest.length;
  return rest.map((_, i) => ({ colour: overlayColour(pane, item.id, i + 1), x: item.x + 6 + i * width, y: item.y + item.height - 7, width: width - 2, height: 5 }))
    .filter((strip) => strip.colour);
}

function paintText(pen, pane, item, ink, isGroup) {
  const middle = item.x + item.width / 2;
  const top = item.y - (state.overlays.length > 1 ? 2 : 0); // strips have room below
  const group = isGroup ? pane.tree.group(item.id) : null;
  pen.fillStyle = ink;
  pen.textAlign = "center";
  pen.font = "600 13px system-ui, sans-serif";
  // Letters of long names are made narrower, so that they stay within the borders and off a group's sign.
  pen.fillText(group ? shortened(group.name, 18) : shortened(pane.nodes[item.id].op, 24), group ? middle + 6 : middle, top + 14, item.width - (group ? 44 : 14));
  pen.font = "11px system-ui, sans-serif";
  pen.fillText(group ? `${group.size} nodes` : shortened(pane.nodes[item.id].name, 27), middle, top + 29, item.width - 14);
  if (!group) return;
  pen.textAlign = "left";
  pen.font = "600 14px system-ui, sans-serif";
  pen.fillText("+", item.x + 8, item.y + 14);
  if (!group.repeat) return;
  pen.textAlign = "right";
  pen.fillText(`x${group.repeat}`, item.x + item.width - 8, item.y + 29);
}
