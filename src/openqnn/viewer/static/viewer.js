"use strict";
// The viewer's page. Text of a model reaches the page by textContent and canvas only, never as HTML.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const NODE = { width: 164, height: 40 };
const FAR = 0.35; // below this scale nodes have no text
const FAMILIES = [
  [/^(Conv|DepthWise|Transpose[Cc]onv|Deconv)/, "#4a7fd4"], [/MatMul|FullyConnected|Gemm|Attention/, "#7a5cc7"],
  [/Pool|Resize|Interp|GridSample/, "#2f8f83"], [/Relu|Sigmoid|Tanh|Gelu|Swish|Softmax|Elu|Neuron/i, "#c2602d"],
  [/Norm|Batchnorm/, "#a8833a"], [/^(Input|Output|Compiled)$/, "#6b7686"],
  [/Reshape|Transpose|Concat|Split|Slice|Pad|Gather|Pack|Expand|Tile|Squeeze|Flatten/, "#7d8794"],
  [/Quant|Convert|Cast/, "#b1498a"],
];
const colourOfOp = (op) => (FAMILIES.find(([pattern]) => pattern.test(op)) || [0, "#5b6b80"])[1];

function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function heat(share) {
  const from = [255, 232, 163];
  const to = [215, 48, 31];
  return `rgb(${from.map((c, i) => Math.round(c + (to[i] - c) * share)).join(",")})`;
}

const themeColours = () => {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return { back: read("--back"), card: read("--card"), ink: read("--ink"), dim: read("--dim"), edge: read("--edge"),
    mark: read("--mark"), added: read("--added"), removed: read("--removed"), changed: read("--changed") };
};

class Pane {
  constructor(record, index) {
    Object.assign(this, record);
    this.index = index;
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.selected = -1;
    this.differences = new Map();
    this.texts = this.nodes.map(searchText);
    this.rows = rowsOf(this.places);
    this.box = element("section", undefined, "pane");
    this.box.setAttribute("aria-label", this.title);
    this.canvas = element("canvas", undefined, "graph");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", `${this.title}: arrow keys go from node to node, plus and minus zoom`);
    this.map = element("canvas", undefined, "map");
    this.map.setAttribute("aria-hidden", "true");
    this.box.append(this.canvas, this.map, element("div", `${this.title} (${this.kind}, ${this.nodes.length} nodes)`, "title"));
    byId("panes").append(this.box);
    this.listen();
  }

  listen() {
    new ResizeObserver(() => this.resize()).observe(this.box);
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
    }, { passive: false });
    let from = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      from = { x: event.offsetX, y: event.offsetY, moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!from) return;
      const dx = event.offsetX - from.x;
      const dy = event.offsetY - from.y;
      if (!from.moved && Math.hypot(dx, dy) < 4) return;
      from = { x: event.offsetX, y: event.offsetY, moved: true };
      this.x += dx;
      this.y += dy;
      this.draw();
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (from && !from.moved) select(this, this.nodeAt(event.offsetX, event.offsetY));
      from = null;
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.map.addEventListener("pointerdown", (event) => {
      const share = this.mapScale();
      this.x = this.canvas.clientWidth / 2 - (event.offsetX / share) * this.scale;
      this.y = this.canvas.clientHeight / 2 - (event.offsetY / share) * this.scale;
      this.draw();
    });
  }

  key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) this.follow(steps[event.key]);
    else if (event.key === "ArrowRight") this.beside(1);
    else if (event.key === "ArrowLeft") this.beside(-1);
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else return;
    event.preventDefault();
  }

  follow(step) {
    if (this.selected < 0) return select(this, 0);
    const [out, into] = step > 0 ? [0, 1] : [1, 0];
    const edge = this.edges.find((e) => e[out] === this.selected);
    if (edge) select(this, edge[into]);
  }

  beside(step) {
    if (this.selected < 0) return select(this, 0);
    const row = this.rows.get(this.places[this.selected][1]);
    const next = row[row.indexOf(this.selected) + step];
    if (next !== undefined) select(this, next);
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.map]) {
      canvas.width = canvas.clientWidth * ratio;
      canvas.height = canvas.clientHeight * ratio;
    }
    if (!this.placed) this.start();
    this.draw();
  }

  start() {
    this.placed = true;
    this.fit();
    if (this.scale < 0.6) {
      this.scale = 0.8;
      const first = this.places[0] || [0, 0];
      this.x = this.canvas.clientWidth / 2 - first[0] * this.scale;
      this.y = 70;
    }
  }

  fit() {
    const wide = this.canvas.clientWidth / (this.size[0] + 40);
    const high = (this.canvas.clientHeight - 60) / (this.size[1] + 20);
    this.scale = Math.min(1, wide, high);
    this.x = (this.canvas.clientWidth - (this.size[0] - 190) * this.scale) / 2;
    this.y = 60;
    this.draw();
  }

  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const scale = Math.min(3, Math.max(0.01, this.scale * factor));
    this.x = x - (x - this.x) * (scale / this.scale);
    this.y = y - (y - this.y) * (scale / this.scale);
    this.scale = scale;
    this.draw();
  }

  centre(node) {
    this.scale = Math.max(this.scale, 0.7);
    this.x = this.canvas.clientWidth / 2 - this.places[node][0] * this.scale;
    this.y = this.canvas.clientHeight / 2 - this.places[node][1] * this.scale;
  }

  nodeAt(x, y) {
    const px = (x - this.x) / this.scale;
    const py = (y - this.y) / this.scale;
    return this.places.findIndex(([cx, cy]) => Math.abs(cx - px) <= NODE.width / 2 && Math.abs(cy - py) <= NODE.height / 2);
  }

  fill(node) {
    if (state.overlay) {
      const overlay = this.overlays.find((o) => o.title === state.overlay);
      const value = overlay ? overlay.values[this.nodes[node].name] : undefined;
      if (value === undefined) return "";
      const share = shareOf(overlay, value);
      return share >= state.least ? heat(share) : "";
    }
    return colourOfOp(this.nodes[node].op);
  }

  isFaded(node) {
    if (state.hits && !state.hits[this.index].has(node)) return true;
    return state.only && !this.differences.has(node);
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const ratio = window.devicePixelRatio || 1;
      const pen = this.canvas.getContext("2d");
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
      pen.translate(this.x, this.y);
      pen.scale(this.scale, this.scale);
      this.paint(pen, this.visible());
      this.drawMap();
    });
  }

  visible() {
    const left = -this.x / this.scale - NODE.width;
    const top = -this.y / this.scale - NODE.height;
    return [left, top, left + this.canvas.clientWidth / this.scale + 2 * NODE.width,
      top + this.canvas.clientHeight / this.scale + 2 * NODE.height];
  }

  paint(pen, [left, top, right, bottom]) {
    const colours = themeColours();
    pen.strokeStyle = colours.edge;
    pen.lineWidth = Math.max(1, 0.6 / this.scale);
    pen.beginPath();
    for (const [a, b] of this.edges) {
      const [x, y] = this.places[a];
      const [u, v] = this.places[b];
      if (Math.max(x, u) < left || Math.min(x, u) > right || Math.max(y, v) < top || Math.min(y, v) > bottom) continue;
      const middle = (y + v) / 2;
      pen.moveTo(x, y + NODE.height / 2);
      if (this.scale > FAR) pen.bezierCurveTo(x, middle, u, middle, u, v - NODE.height / 2);
      else pen.lineTo(u, v - NODE.height / 2);
    }
    pen.stroke();
    pen.textAlign = "center";
    for (let node = 0; node < this.nodes.length; node += 1) {
      const [x, y] = this.places[node];
      if (x < left || x > right || y < top || y > bottom) continue;
      this.paintNode(pen, node, x, y, colours);
    }
    pen.globalAlpha = 1;
  }

  paintNode(pen, node, x, y, colours) {
    const fill = this.fill(node);
    pen.globalAlpha = this.isFaded(node) ? 0.15 : 1;
    pen.fillStyle = fill || colours.card;
    pen.fillRect(x - NODE.width / 2, y - NODE.height / 2, NODE.width, NODE.height);
    const difference = this.differences.get(node);
    pen.strokeStyle = node === this.selected ? colours.mark : difference ? colours[difference[0]] : colours.dim;
    pen.lineWidth = node === this.selected ? 4 : difference ? 3 : 1;
    if (this.scale > FAR || difference || node === this.selected) {
      pen.strokeRect(x - NODE.width / 2, y - NODE.height / 2, NODE.width, NODE.height);
    }
    if (this.scale <= FAR) return;
    pen.fillStyle = !fill ? colours.ink : state.overlay ? "#1c2430" : "#fff";
    pen.font = "600 13px system-ui, sans-serif";
    pen.fillText(shortened(this.nodes[node].op, 22), x, y - 2);
    pen.font = "11px system-ui, sans-serif";
    pen.fillText(shortened(this.nodes[node].name, 26), x, y + 13);
  }

  mapScale() {
    return Math.min(this.map.clientWidth / this.size[0], this.map.clientHeight / this.size[1]);
  }

  drawMap() {
    const ratio = window.devicePixelRatio || 1;
    const pen = this.map.getContext("2d");
    const share = this.mapScale();
    const colours = themeColours();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.map.clientWidth, this.map.clientHeight);
    for (let node = 0; node < this.nodes.length; node += 1) {
      const [x, y] = this.places[node];
      pen.fillStyle = this.fill(node) || colours.edge;
      pen.fillRect(x * share, y * share, Math.max(1, NODE.width * share), Math.max(1, NODE.height * share));
    }
    pen.strokeStyle = colours.mark;
    pen.strokeRect((-this.x / this.scale) * share, (-this.y / this.scale) * share,
      (this.canvas.clientWidth / this.scale) * share, (this.canvas.clientHeight / this.scale) * share);
  }
}

function rowsOf(places) {
  const rows = new Map();
  places.forEach(([, y], node) => rows.set(y, [...(rows.get(y) || []), node]));
  for (const row of rows.values()) row.sort((a, b) => places[a][0] - places[b][0]);
  return rows;
}

function searchText(node) {
  const tensors = [...node.inputs, ...node.outputs].map((t) => `${t.name} ${t.dtype} ${t.shape.join("x")}`);
  const params = Object.entries(node.params).map(([name, value]) => `${name}=${value}`);
  return [node.name, node.op, node.source, ...params, ...tensors].join(" ").toLowerCase();
}

// Fuzzy: every word of what is sought occurs, or its letters do in this order within the node's name.
function matches(text, name, sought) {
  if (sought.split(/\s+/).every((word) => text.includes(word))) return true;
  let place = -1;
  return sought.length > 3 && [...sought].every((letter) => (place = name.indexOf(letter, place + 1)) >= 0);
}

const shortened = (text, most) => (text.length <= most ? text : `...${text.slice(3 - most)}`);

function shareOf(overlay, value) {
  const numbers = Object.values(overlay.values);
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  return high === low ? 1 : (value - low) / (high - low);
}

const state = { overlay: "", least: 0, hits: null, only: false, turn: -1, worst: -1 };
const panes = data.panes.map((record, index) => new Pane(record, index));
const drawAll = () => panes.forEach((pane) => pane.draw());

data.diffs.forEach((diff, index) => {
  Object.entries(diff.left).forEach(([node, why]) => panes[index].differences.set(Number(node), why));
  Object.entries(diff.right).forEach(([node, why]) => panes[index + 1].differences.set(Number(node), why));
});
const partners = data.diffs.map((diff) => [new Map(diff.pairs), new Map(diff.pairs.map(([a, b]) => [b, a]))]);

function select(pane, node) {
  pane.selected = node;
  describe(pane, node);
  if (node >= 0) {
    follow(pane.index, node, 1);
    follow(pane.index, node, -1);
    const [x, y] = pane.places[node];
    const [left, top, right, bottom] = pane.visible();
    if (x < left + NODE.width || x > right - NODE.width || y < top + 60 || y > bottom - 60) pane.centre(node);
  }
  drawAll();
}

// The other panes go to the node that this one became, or was.
function follow(index, node, step) {
  const map = step > 0 ? partners[index] && partners[index][0] : partners[index - 1] && partners[index - 1][1];
  if (!map) return;
  const other = panes[index + step];
  const found = map.get(node);
  other.selected = found === undefined ? -1 : found;
  if (found === undefined) return;
  other.centre(found);
  follow(index + step, found, step);
}

function list(entries) {
  const made = element("dl");
  entries.forEach(([name, value]) => made.append(element("dt", name), element("dd", value)));
  return made;
}

function describe(pane, node) {
  const panel = byId("panel");
  panel.replaceChildren();
  if (node < 0) {
    panel.append(element("h2", pane.title), list([["kind", pane.kind], ...Object.entries(pane.facts)]));
    return;
  }
  const found = pane.nodes[node];
  panel.append(element("h2", found.name));
  const entries = [["op", found.op]];
  if (found.source) entries.push(["source", found.source]);
  pane.overlays.forEach((overlay) => {
    if (found.name in overlay.values) entries.push([overlay.title, `${overlay.values[found.name].toLocaleString("en")} ${overlay.unit}`]);
  });
  panel.append(list(entries));
  const difference = pane.differences.get(node);
  if (difference) {
    panel.append(element("h3", "Difference"), element("div", difference[0], difference[0]));
    difference.slice(1).forEach((line) => panel.append(element("div", line)));
  }
  if (Object.keys(found.params).length) panel.append(element("h3", "Parameters"), list(Object.entries(found.params)));
  for (const [title, tensors] of [["Inputs", found.inputs], ["Outputs", found.outputs]]) {
    if (tensors.length) panel.append(element("h3", title), ...tensors.map(tensorBox));
  }
}

function tensorBox(tensor) {
  const box = element("div", undefined, "tensor");
  box.append(element("div", tensor.name), element("code", `${tensor.dtype} [${tensor.shape.join(", ")}]`));
  if (tensor.encoding) box.append(element("div", tensor.encoding, "dim"));
  if (tensor.origin) box.append(element("div", `encoding from: ${tensor.origin}`, "dim"));
  const { histogram, ...figures } = tensor.statistics || {};
  const lines = Object.entries(figures).filter(([name, value]) => name !== "not finite" || value);
  if (lines.length) box.append(list(lines.map(([name, value]) => [name, String(value)])));
  if (histogram) box.append(bars(histogram));
  return box;
}

function bars(counts) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("class", "histogram");
  svg.setAttribute("viewBox", `0 0 ${counts.length} 1`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `histogram of ${counts.length} bins`);
  const most = Math.max(...counts);
  counts.forEach((count, index) => {
    const bar = document.createElementNS(space, "rect");
    const size = { x: index + 0.05, y: 1 - count / most, width: 0.9, height: count / most };
    Object.entries(size).forEach(([name, value]) => bar.setAttribute(name, value));
    svg.append(bar);
  });
  return svg;
}

function find() {
  const sought = byId("find").value.trim().toLowerCase();
  const hit = (pane) => new Set(pane.nodes.flatMap((node, i) => (matches(pane.texts[i], node.name.toLowerCase(), sought) ? [i] : [])));
  state.hits = sought ? panes.map(hit) : null;
  state.turn = -1;
  byId("hits").textContent = state.hits ? `${state.hits.reduce((sum, each) => sum + each.size, 0)} found` : "";
  drawAll();
}

function nextHit() {
  if (!state.hits) return;
  const all = state.hits.flatMap((each, index) => [...each].map((node) => [index, node]));
  if (!all.length) return;
  state.turn = (state.turn + 1) % all.length;
  const [index, node] = all[state.turn];
  panes[index].centre(node);
  select(panes[index], node);
}

function nextDifference(step) {
  const pane = panes[panes.length - 1];
  const other = panes[0];
  const of = pane.differences.size ? pane : other;
  const all = [...of.differences.keys()].sort((a, b) => a - b);
  if (!all.length) return;
  const place = all.findIndex((node) => node >= of.selected);
  const at = of.selected < 0 ? (step > 0 ? 0 : all.length - 1)
    : step > 0 ? all.findIndex((node) => node > of.selected) : (place < 0 ? all.length : place) - 1;
  const node = all[(at + all.length) % all.length] ?? all[0];
  of.centre(node);
  select(of, node);
}

function nextWorst() {
  const pane = panes.find((each) => each.overlays.some((o) => o.title === state.overlay));
  if (!pane) return;
  const overlay = pane.overlays.find((o) => o.title === state.overlay);
  const ranked = pane.nodes.map((node, index) => [overlay.values[node.name], index]).filter(([value]) => value !== undefined);
  ranked.sort((a, b) => b[0] - a[0]);
  if (!ranked.length) return;
  state.worst = (state.worst + 1) % ranked.length;
  const node = ranked[state.worst][1];
  pane.centre(node);
  select(pane, node);
}

function chooseOverlay() {
  state.overlay = byId("overlay").value;
  state.worst = -1;
  const shown = Boolean(state.overlay);
  byId("worst").hidden = !shown;
  byId("least-label").hidden = !shown;
  const scale = byId("scale");
  scale.replaceChildren();
  const overlay = panes.flatMap((pane) => pane.overlays).find((o) => o.title === state.overlay);
  if (overlay) {
    const numbers = Object.values(overlay.values);
    const text = (value) => `${value.toLocaleString("en")} ${overlay.unit}`;
    scale.append(text(Math.min(...numbers)), element("i"), text(Math.max(...numbers)));
  }
  drawAll();
}

function save(name, blob) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The whole graph of the first pane, not only what is in view.
function svgText(pane) {
  const escape = (text) => text.replace(/[<>&"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const parts = pane.edges.map(([a, b]) => {
    const [x, y] = pane.places[a];
    const [u, v] = pane.places[b];
    const middle = (y + v) / 2;
    return `<path d="M${x} ${y + 20}C${x} ${middle} ${u} ${middle} ${u} ${v - 20}" fill="none" stroke="#8b95a5"/>`;
  });
  pane.nodes.forEach((node, index) => {
    const [x, y] = pane.places[index];
    const fill = pane.fill(index) || "#fff";
    const ink = pane.fill(index) && !state.overlay ? "#fff" : "#1c2430";
    parts.push(`<rect x="${x - 82}" y="${y - 20}" width="164" height="40" fill="${fill}" stroke="#5a6473"/>`,
      `<text x="${x}" y="${y - 2}" text-anchor="middle" font-weight="600" font-size="13" fill="${ink}">${escape(shortened(node.op, 22))}</text>`,
      `<text x="${x}" y="${y + 13}" text-anchor="middle" font-size="11" fill="${ink}">${escape(shortened(node.name, 26))}</text>`);
  });
  const [width, height] = pane.size;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-95 -40 ${width} ${height + 40}" font-family="system-ui, sans-serif">${parts.join("")}</svg>`;
}

function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  byId("theme").textContent = dark ? "Light" : "Dark";
  drawAll();
}

byId("find").addEventListener("input", find);
byId("find").addEventListener("keydown", (event) => {
  if (event.key === "Enter") nextHit();
});
byId("overlay").addEventListener("change", chooseOverlay);
byId("least").addEventListener("input", () => {
  state.least = Number(byId("least").value) / 100;
  drawAll();
});
byId("worst").addEventListener("click", nextWorst);
byId("next").addEventListener("click", () => nextDifference(1));
byId("previous").addEventListener("click", () => nextDifference(-1));
byId("only").addEventListener("change", () => {
  state.only = byId("only").checked;
  drawAll();
});
byId("fit").addEventListener("click", () => panes.forEach((pane) => pane.fit()));
byId("svg").addEventListener("click", () => save(`${panes[0].title}.svg`, new Blob([svgText(panes[0])], { type: "image/svg+xml" })));
byId("png").addEventListener("click", () => panes[0].canvas.toBlob((blob) => save(`${panes[0].title}.png`, blob)));
byId("theme").addEventListener("click", () => setTheme(!document.documentElement.classList.contains("dark")));
document.addEventListener("keydown", (event) => {
  if (/^(INPUT|SELECT)$/.test(event.target.tagName)) return;
  const keys = { "/": () => byId("find").focus(), n: () => nextDifference(1), p: () => nextDifference(-1), w: nextWorst,
    0: () => panes.forEach((pane) => pane.fit()) };
  if (keys[event.key] && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    keys[event.key]();
  }
});

const titles = new Set(panes.flatMap((pane) => pane.overlays.map((o) => o.title)));
titles.forEach((title) => byId("overlay").append(element("option", title)));
byId("diff-tools").hidden = !data.diffs.length;
setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
describe(panes[0], -1);
document.title = `${panes.map((pane) => pane.title).join(" | ")} - OpenQNN viewer`;
