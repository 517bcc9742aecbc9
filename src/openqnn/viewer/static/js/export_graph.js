// The whole graph, as it is arranged, as SVG, as PNG and on paper.

import { byId, element, save, shortened } from "./elements.js";
import { differenceOf, fillOf, stripsOf } from "./paint.js";
import { trace } from "./places.js";
import { marksOf } from "./run_marks.js";
import { state } from "./state.js";
import { inkOn, themeColours } from "./theme.js";

const LARGEST = 12000; // pixels of a PNG along its longer side
const MOST = 40e6; // and pixels in all
const MARGIN = 20;

const escaped = (text) => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
  .replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);

// A pen that writes the path instead of drawing it.
function writtenPath(line) {
  const parts = [];
  const one = (value) => Math.round(value * 10) / 10;
  trace({
    moveTo: (x, y) => parts.push(`M${one(x)} ${one(y)}`),
    lineTo: (x, y) => parts.push(`L${one(x)} ${one(y)}`),
    bezierCurveTo: (...all) => parts.push(`C${all.map(one).join(" ")}`),
  }, line, true);
  return parts.join("");
}

export function svgText(pane) {
  const colours = themeColours();
  const { scene } = pane;
  const size = [-MARGIN, -MARGIN, scene.width + 2 * MARGIN, scene.height + 2 * MARGIN].map(Math.round);
  const groups = scene.items.filter((item) => item.open).map((item) => groupText(pane, item, colours));
  const lines = scene.lines.map((line) => `<path d="${writtenPath(line)}"/>`);
  const items = scene.items.filter((item) => !item.open).map((item) => itemText(pane, item, colours));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${size.join(" ")}" width="${size[2]}" height="${size[3]}" font-family="system-ui, sans-serif">`,
    `<title>${escaped(pane.title)}</title><rect x="${size[0]}" y="${size[1]}" width="${size[2]}" height="${size[3]}" fill="${colours.back}"/>`,
    ...groups, `<g fill="none" stroke="${colours.edge}" stroke-width="1.2">${lines.join("")}</g>`, ...items, "</svg>",
  ].join("\n");
}

const box = (item, more) => `<rect x="${Math.round(item.x)}" y="${Math.round(item.y)}" width="${Math.round(item.width)}" height="${item.height}" rx="6" ${more}/>`;

function groupText(pane, item, colours) {
  const name = shortened(pane.tree.group(item.id).name, Math.max(8, Math.floor(item.width / 7.5)));
  return `${box(item, `fill="${colours.group}" stroke="${colours.edge}"`)}<text x="${item.x + 10}" y="${item.y + 18}" font-size="12" font-weight="600" fill="${colours.dim}">${escaped(name)}</text>`;
}

const ruler = element("canvas").getContext("2d");

// A text in the middle of a box; its letters are made narrower where it is wider.
function lineText(text, x, y, size, weight, most) {
  ruler.font = `${weight} ${size}px system-ui, sans-serif`;
  const fitted = ruler.measureText(text).width > most ? ` textLength="${most}" lengthAdjust="spacingAndGlyphs"` : "";
  return `<text x="${x}" y="${y}" font-size="${size}" font-weight="${weight}"${fitted}>${escaped(text)}</text>`;
}

function itemText(pane, item, colours) {
  const group = pane.tree.isGroup(item.id) ? pane.tree.group(item.id) : null;
  const fill = fillOf(pane, item.id);
  const difference = colours[differenceOf(pane, item.id)];
  const middle = Math.round(item.x + item.width / 2);
  const [first, second] = group
    ? [group.name, `${group.size} nodes${group.repeat ? ` x${group.repeat}` : ""}`]
    : [pane.nodes[item.id].op, pane.nodes[item.id].name];
  const stroke = difference ? `stroke="${difference}" stroke-width="3"` : `stroke="${colours.line}"`;
  const card = `fill="${fill || colours.card}" ${stroke}`;
  const stack = group ? [6, 3].map((step) => box({ ...item, x: item.x + step, y: item.y + step }, card)).join("") : "";
  const marks = marksOf(pane, item.id).map((mark) => markText(item, mark)).join("");
  const strips = stripsOf(pane, item).map((strip) => stripText(strip, colours.card)).join("");
  const top = item.y - (strips ? 3 : 0);
  return `<g fill="${fill ? inkOn(fill) : colours.ink}" text-anchor="middle">${stack}${box(item, card)}${marks}${strips}`
    + lineText(shortened(first, group ? 20 : 24), middle, top + 18, 13, 600, item.width - 14)
    + lineText(shortened(second, 27), middle, top + 33, 11, 400, item.width - 14)
    + `<title>${escaped(pane.nameOf(item.id))}</title></g>`;
}

const markText = (item, { colour, width, out }) => `<rect x="${item.x - out}" y="${item.y - out}" width="${item.width + 2 * out}" height="${item.height + 2 * out}" fill="none" stroke="${colour}" stroke-width="${width}"/>`;
const stripText = ({ colour, x, y, width, height }, card) => `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${colour}" stroke="${card}"/>`;

const svgBlob = (pane) => new Blob([svgText(pane)], { type: "image/svg+xml" });
const chosenPane = () => state.panes.find((pane) => pane.selected >= 0) || state.panes[0];

export function saveSvg() {
  const pane = chosenPane();
  save(`${pane.title}.svg`, svgBlob(pane));
}

export function savePng() {
  const pane = chosenPane();
  const [width, height] = [pane.scene.width + 2 * MARGIN, pane.scene.height + 2 * MARGIN];
  const scale = Math.min(2, LARGEST / width, LARGEST / height, Math.sqrt(MOST / (width * height)));
  const picture = new Image();
  picture.onload = () => {
    const canvas = element("canvas");
    canvas.width = Math.max(1, width * scale);
    canvas.height = Math.max(1, height * scale);
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(`${pane.title}.png`, blob));
    URL.revokeObjectURL(picture.src);
  };
  picture.src = URL.createObjectURL(svgBlob(pane));
}

// On paper stand the whole graphs, one to a page, and the panel.
export function preparePrint() {
  byId("paper").replaceChildren(...state.panes.map((pane) => {
    const picture = new Image();
    picture.alt = pane.title;
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(pane))}`;
    return picture;
  }));
}

export const clearPrint = () => byId("paper").replaceChildren();
