// From rows and columns, which Python computed for each group, to places on the page: rows and columns are
// stretched to what stands in them, which depends on the groups that are open.

export const NODE = { width: 164, height: 42 };
const UNIT = NODE.width + 26; // a column
const GAP = { x: 26, y: 36, line: 12 };
const HEAD = 26; // the name of an open group
const PAD = 16;
const MOST_BENDS = 200000; // beyond it, lines do not push nodes aside

export function place(tree) {
  const found = { items: [], lines: [], width: 0, height: 0, at: new Map() };
  const whole = measure(tree, tree.count);
  put(tree, whole, 0, 0, found);
  found.width = whole.width;
  found.height = whole.height;
  return found;
}

function measure(tree, item) {
  if (!tree.isGroup(item) || !tree.open.has(item)) return { item, width: NODE.width, height: NODE.height, in: NODE.width / 2, out: NODE.width / 2 };
  const group = tree.group(item);
  const parts = group.items.map((each) => measure(tree, each));
  const port = { width: 0, height: 0, in: 0, out: 0 };
  const boxes = [...parts, port, port];
  const { tops, heights } = stretchRows(group, boxes);
  const x = stretchColumns(group, boxes, heights.length);
  const isWhole = item === tree.count;
  const used = boxes.map((_, i) => i).filter((i) => i < parts.length || group.ports[i - parts.length]);
  const left = Math.min(0, ...used.map((i) => x(group.columns[i]) - boxes[i].width / 2));
  const right = used.reduce((most, i) => Math.max(most, x(group.columns[i]) + boxes[i].width / 2), 0);
  const pad = isWhole ? 0 : PAD;
  const least = isWhole ? 0 : Math.max(0, Math.min(320, 7.5 * (group.name.length + 12)) - (right - left) - 2 * pad) / 2;
  const shift = pad + least - left;
  const head = isWhole ? 0 : HEAD;
  const last = heights.length - 1;
  const width = right - left + 2 * pad + 2 * least;
  const inside = (index) => (group.ports[index] ? x(group.columns[parts.length + index]) + shift : width / 2);
  return { item, group, parts, boxes, tops: tops.map((y) => y + head + pad), heights, x: (column) => x(column) + shift, head,
    width, height: tops[last] + heights[last] + head + 2 * pad, in: inside(0), out: inside(1) };
}

function stretchRows(group, boxes) {
  const heights = [];
  boxes.forEach((box, i) => {
    const row = group.rows[i];
    if (i < boxes.length - 2 || group.ports[i - boxes.length + 2]) heights[row] = Math.max(heights[row] || 0, box.height);
  });
  for (let row = 0; row < heights.length; row += 1) heights[row] = heights[row] || 0;
  if (!heights.length) heights.push(0);
  const tops = [];
  let y = 0;
  heights.forEach((height, row) => {
    tops.push(y);
    y += height + (height && heights[row + 1] !== 0 ? GAP.y : GAP.y / 3);
  });
  return { tops, heights };
}

// Columns keep their order, and the same column stays one: neighbours in a row push their columns apart.
function stretchColumns(group, boxes, count) {
  const rows = Array.from({ length: count }, () => []);
  boxes.forEach((box, i) => {
    if (i < boxes.length - 2 || group.ports[i - boxes.length + 2]) rows[group.rows[i]].push([group.columns[i], box.width]);
  });
  const bends = group.lines.reduce((sum, line) => sum + bendsOf(line), 0);
  if (bends < MOST_BENDS) group.lines.forEach((line) => addBends(line, rows));
  const needs = new Map();
  const columns = new Set(bends < MOST_BENDS ? [] : group.lines.flatMap((line) => line.filter((_, i) => i > 1 && i % 3 === 2)));
  for (const row of rows) {
    row.sort((a, b) => a[0] - b[0]);
    row.forEach(([column]) => columns.add(column));
    for (let i = 1; i < row.length; i += 1) {
      const [[before, width], [column, wide]] = [row[i - 1], row[i]];
      const space = (width + wide) / 2 + (width > GAP.line && wide > GAP.line ? GAP.x : GAP.line);
      if (!needs.has(column)) needs.set(column, []);
      needs.get(column).push([before, space]);
    }
  }
  const x = new Map();
  let last = null;
  for (const column of [...columns].sort((a, b) => a - b)) {
    let least = last === null ? 0 : x.get(last) + (column - last) * UNIT;
    for (const [before, space] of needs.get(column) || []) if (before < column) least = Math.max(least, x.get(before) + space);
    x.set(column, least);
    last = column;
  }
  return (column) => x.get(column) ?? column * UNIT;
}

function bendsOf(line) {
  let sum = 0;
  for (let i = 2; i < line.length; i += 3) sum += Math.abs(line[i + 2] - line[i + 1]) + 1;
  return sum;
}

function addBends(line, rows) {
  for (let i = 2; i < line.length; i += 3) {
    const [from, to] = [line[i + 1], line[i + 2]].sort((a, b) => a - b);
    for (let row = from; row <= to; row += 1) rows[row]?.push([line[i], GAP.line]);
  }
}

function put(tree, box, left, top, found) {
  const { group } = box;
  if (box.item > tree.count || !group) {
    const placed = { id: box.item, x: left, y: top, width: box.width, height: box.height, open: Boolean(group) };
    found.at.set(box.item, placed);
    found.items.push(placed);
  }
  if (!group) return;
  box.parts.forEach((part, i) => {
    const row = group.rows[i];
    const y = top + box.tops[row] + (box.heights[row] - part.height) / 2;
    put(tree, part, left + box.x(group.columns[i]) - part.width / 2, y, found);
  });
  for (const line of group.lines) found.lines.push(lineOf(box, line, left, top));
}

// A line as a path: pairs of points, between which it runs straight down, joined by curves.
function lineOf(box, line, left, top) {
  const { group } = box;
  const [a, b] = line;
  const count = group.items.length;
  const rowTop = (row) => top + box.tops[row];
  const rowEnd = (row) => rowTop(row) + box.heights[row];
  const [rowA, rowB] = [group.rows[a], group.rows[b]];
  const xOf = (i, side) => left + box.x(group.columns[i]) - box.boxes[i].width / 2 + box.boxes[i][side];
  const startX = a < count ? xOf(a, "out") : left + box.in;
  const endX = b < count ? xOf(b, "in") : left + box.out;
  const startY = a < count ? (rowTop(rowA) + rowEnd(rowA) + box.boxes[a].height) / 2 : top;
  const endY = b < count ? (rowTop(rowB) + rowEnd(rowB) - box.boxes[b].height) / 2 : top + box.height;
  const points = [startX, startY, startX, rowEnd(rowA)];
  for (let i = 2; i < line.length; i += 3) {
    const x = left + box.x(line[i]);
    const down = line[i + 1] <= line[i + 2];
    points.push(x, down ? rowTop(line[i + 1]) : rowEnd(line[i + 1]), x, down ? rowEnd(line[i + 2]) : rowTop(line[i + 2]));
  }
  points.push(endX, rowTop(rowB), endX, endY);
  let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < points.length; i += 2) {
    x0 = Math.min(x0, points[i]);
    x1 = Math.max(x1, points[i]);
    y0 = Math.min(y0, points[i + 1]);
    y1 = Math.max(y1, points[i + 1]);
  }
  const end = (i) => (i < count ? group.items[i] : -1);
  return { points, x0, y0, x1, y1, group: box.item, from: end(a), to: end(b) };
}

// Draws a line with anything that has moveTo, lineTo and bezierCurveTo.
export function trace(pen, { points }, curved) {
  pen.moveTo(points[0], points[1]);
  for (let i = 2; i < points.length; i += 4) {
    pen.lineTo(points[i], points[i + 1]);
    if (i + 3 >= points.length) break;
    const [x, y, u, v] = [points[i], points[i + 1], points[i + 2], points[i + 3]];
    const middle = (y + v) / 2;
    if (curved && x !== u) pen.bezierCurveTo(x, middle, u, middle, u, v);
    else pen.lineTo(u, v);
  }
}
