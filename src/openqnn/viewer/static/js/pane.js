// One graph on a canvas: where it is looked at from, what is chosen in it, and what the pointer does.

import { element } from "./elements.js";
import { Minimap } from "./minimap.js";
import { paintScene } from "./paint.js";
import { place } from "./places.js";
import { reveal, selected, state } from "./state.js";
import { Tree } from "./tree.js";

const SLOW = 9; // milliseconds: a frame that takes longer is moved as a picture while the view moves
const REST = 130; // milliseconds after which it is drawn anew

export class Pane {
  constructor(record, index, number) {
    Object.assign(this, { nodes: record.nodes, edges: record.edges, overlays: record.overlays, title: record.title, kind: record.kind, facts: record.facts, marks: record.marks || {} });
    this.isMarked = Object.keys(this.marks).length > 0;
    this.index = index;
    this.number = number;
    this.tree = new Tree(record);
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.selected = -1;
    this.differences = new Map();
    this.frames = 0;
    // A graph's output often has the name of the node that makes it: what is known by the name is of that node.
    const makers = new Set(this.nodes.filter((node) => node.op !== "Output").map((node) => node.name));
    this.names = this.nodes.map((node) => (node.op === "Output" && makers.has(node.name) ? null : node.name));
    this.linkEdges();
    this.build();
    this.arrange();
    this.listen();
  }

  linkEdges() {
    this.readers = this.nodes.map(() => []);
    this.makers = this.nodes.map(() => []);
    for (const [a, b] of this.edges) {
      this.readers[a].push(b);
      this.makers[b].push(a);
    }
    this.measureDepths();
  }

  // How many nodes stand above each at most; what reads nothing stands right above its first reader.
  measureDepths() {
    this.depths = new Int32Array(this.nodes.length);
    for (let node = 0; node < this.nodes.length; node += 1) for (const maker of this.makers[node]) this.depths[node] = Math.max(this.depths[node], this.depths[maker] + 1);
    this.nodes.forEach((_, node) => {
      const below = this.makers[node].length ? [] : this.readers[node];
      if (below.length) this.depths[node] = below.reduce((least, each) => Math.min(least, this.depths[each]), Infinity) - 1;
    });
    this.deepest = this.depths.reduce((most, depth) => Math.max(most, depth), 1);
  }

  build() {
    this.box = element("section", undefined, "pane");
    this.box.setAttribute("aria-label", this.title);
    this.canvas = element("canvas", undefined, "graph");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", `${this.title}: arrow keys go from node to node, Enter opens groups, ? tells all keys`);
    this.minimap = new Minimap(this);
    const title = element("div", undefined, "title");
    title.append(element("strong", this.title), element("span", `${this.kind}, ${this.nodes.length.toLocaleString("en")} nodes`));
    this.box.append(this.canvas, this.minimap.canvas, title);
    document.getElementById("panes").append(this.box);
  }

  arrange() {
    this.scene = place(this.tree);
    this.minimap.changed();
    this.cache = null;
  }

  // Opens or closes groups while a place stays where it is on the screen.
  rearrange(change, item = this.selected) {
    const before = this.scene.at.get(item);
    change();
    this.arrange();
    const after = this.scene.at.get(this.tree.shown(Math.max(item, 0)));
    if (before && after) {
      this.x += (before.x + before.width / 2 - after.x - after.width / 2) * this.scale;
      this.y += (before.y - after.y) * this.scale;
    }
    this.draw();
  }

  listen() {
    new ResizeObserver(() => this.resize()).observe(this.box);
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) this.pan(-event.deltaY, 0);
      else this.zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
    }, { passive: false });
    let from = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      from = { x: event.offsetX, y: event.offsetY, moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!from) return this.hover(event.offsetX, event.offsetY);
      const [dx, dy] = [event.offsetX - from.x, event.offsetY - from.y];
      if (!from.moved && Math.hypot(dx, dy) < 4) return;
      from = { x: event.offsetX, y: event.offsetY, moved: true };
      this.pan(dx, dy);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (from && !from.moved) this.click(event.offsetX, event.offsetY);
      from = null;
    });
    this.canvas.addEventListener("dblclick", (event) => {
      const found = this.itemAt(event.offsetX, event.offsetY);
      if (found && this.tree.isGroup(found.id) && !this.onSign(found, event.offsetX, event.offsetY)) this.toggle(found.id);
    });
  }

  hover(x, y) {
    const found = this.itemAt(x, y);
    this.canvas.style.cursor = found ? "pointer" : "grab";
    this.canvas.title = found ? this.nameOf(found.id) : "";
  }

  click(x, y) {
    const found = this.itemAt(x, y);
    if (found && this.tree.isGroup(found.id) && this.onSign(found, x, y)) return this.toggle(found.id);
    selected(this, found ? found.id : -1);
  }

  // The sign in the upper left corner of a group opens and closes it.
  onSign(found, x, y) {
    const [px, py] = this.toGraph(x, y);
    return px - found.x < 26 && py - found.y < 26;
  }

  toggle(item) {
    this.rearrange(() => this.tree.toggle(item), item);
  }

  toGraph(x, y) {
    return [(x - this.x) / this.scale, (y - this.y) / this.scale];
  }

  nameOf(item) {
    if (!this.tree.isGroup(item)) return this.nodes[item].name;
    const group = this.tree.group(item);
    return group.repeat ? `${group.path} (x${group.repeat})` : group.path;
  }

  // The innermost item there: an item stands behind those in it.
  itemAt(x, y) {
    const [px, py] = this.toGraph(x, y);
    const inside = (item) => px >= item.x && px <= item.x + item.width && py >= item.y && py <= item.y + item.height;
    for (let i = this.scene.items.length - 1; i >= 0; i -= 1) if (inside(this.scene.items[i])) return this.scene.items[i];
    return null;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    this.minimap.resize(ratio);
    this.cache = null;
    if (!this.started && this.width) this.start();
    this.drawNow();
  }

  start() {
    this.started = true;
    this.fit();
    if (this.scale >= 0.5) return;
    this.scale = 0.8;
    // An input stands where reading begins, and a list begins at its left edge.
    const input = this.nodes.findIndex((node) => node.op === "Input");
    const first = this.scene.at.get(this.tree.shown(Math.max(input, 0))) || this.scene.items[0];
    this.x = this.width / 2 - (first ? first.x + first.width / 2 : 0) * this.scale;
    if (!this.edges.length) this.x = 30;
    const inputs = this.nodes.map((node, index) => (node.op === "Input" ? this.scene.at.get(this.tree.shown(index)) : null)).filter(Boolean);
    this.y = 60 - inputs.reduce((least, each) => Math.min(least, each.y), first ? first.y : 0) * this.scale;
  }

  fit() {
    const [wide, high] = [this.width / (this.scene.width + 60), (this.height - 80) / (this.scene.height + 20)];
    this.scale = Math.min(1.2, Math.max(0.004, Math.min(wide, high)));
    this.x = (this.width - this.scene.width * this.scale) / 2;
    this.y = 56;
    this.draw();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.draw(true);
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const scale = Math.min(3, Math.max(0.004, this.scale * factor));
    this.x = x - (x - this.x) * (scale / this.scale);
    this.y = y - (y - this.y) * (scale / this.scale);
    this.scale = scale;
    this.draw(true);
  }

  // Brings an item into view, opening what is around it; one that is in view already stays where it is.
  show(item, always = false) {
    if (this.box.hidden) reveal(this);
    if (this.tree.reveal(item)) this.arrange();
    const found = this.scene.at.get(item);
    if (!found) return;
    const [x, y] = [found.x * this.scale + this.x, found.y * this.scale + this.y];
    const [w, h] = [Math.min(found.width * this.scale, this.width / 2), Math.min(found.height * this.scale, this.height / 3)];
    const seen = x > 20 && y > 50 && x + w < this.width - 20 && y + h < this.height - 20;
    if (seen && (!always || !this.minimap.isNeeded()) && this.scale > 0.4) return;
    this.scale = Math.max(this.scale, 0.75);
    this.x = this.width / 2 - (found.x + found.width / 2) * this.scale;
    this.y = this.height / 2 - (found.y + Math.min(found.height / 2, 200)) * this.scale;
  }

  // Brings an item to the height at which its partner stands in another pane.
  showBeside(item, pane, partner) {
    if (this.tree.reveal(item)) this.arrange();
    const [found, other] = [this.scene.at.get(item), pane.scene.at.get(pane.tree.shown(partner))];
    if (!found || !other || !this.minimap.isNeeded()) return this.show(item);
    const x = found.x * this.scale + this.x;
    const seen = this.scale > 0.4 && x > 20 && x + found.width * this.scale < this.width - 20;
    if (this.scale <= 0.4) this.scale = pane.scale;
    if (!seen) this.x = this.width / 2 - (found.x + found.width / 2) * this.scale;
    this.y = other.y * pane.scale + pane.y - found.y * this.scale;
  }

  // `moving` says that more of the same comes at once: a picture that takes long to draw is then moved as it is.
  draw(moving = false) {
    this.moving = moving;
    if (!moving) this.cache = null;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.drawNow(this.moving);
    });
  }

  drawNow(moving = false) {
    if (!this.width || !this.height) return;
    if (moving && this.slow) {
      if (!this.cache) this.keep();
      this.paintKept();
      clearTimeout(this.rest);
      this.rest = setTimeout(() => this.draw(), REST);
    } else {
      const start = performance.now();
      this.paintSharp();
      this.slow = performance.now() - start > SLOW;
      this.kept = { x: this.x, y: this.y, scale: this.scale };
      if (!this.frames) performance.mark("graph drawn");
    }
    this.minimap.draw();
    this.frames += 1;
  }

  pen(canvas = this.canvas) {
    const ratio = window.devicePixelRatio || 1;
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    return pen;
  }

  paintSharp() {
    const pen = this.pen();
    pen.translate(this.x, this.y);
    pen.scale(this.scale, this.scale);
    const [left, top] = this.toGraph(0, 0);
    paintScene(pen, this, { left, top, right: left + this.width / this.scale, bottom: top + this.height / this.scale, scale: this.scale });
  }

  keep() {
    this.cache = element("canvas");
    this.cache.width = this.canvas.width;
    this.cache.height = this.canvas.height;
    this.cache.getContext("2d").drawImage(this.canvas, 0, 0);
    this.cache.from = this.kept;
  }

  // The picture of the last sharp frame over a coarse one of the whole.
  paintKept() {
    const pen = this.pen();
    const { x, y, scale } = this.cache.from;
    const factor = this.scale / scale;
    const [left, top] = [this.x - x * factor, this.y - y * factor];
    const coarse = this.minimap.overview();
    pen.imageSmoothingEnabled = false;
    pen.drawImage(coarse.canvas, this.x, this.y, (coarse.canvas.width / coarse.scale) * this.scale, (coarse.canvas.height / coarse.scale) * this.scale);
    pen.clearRect(left, top, this.width * factor, this.height * factor);
    pen.drawImage(this.cache, left, top, this.width * factor, this.height * factor);
  }

  isFaded(item) {
    const nodes = state.hits || state.only ? this.tree.nodesIn(item) : [];
    if (state.hits && !nodes.some((node) => state.hits[this.index].has(node))) return true;
    return state.only && !nodes.some((node) => this.differences.has(node));
  }
}
