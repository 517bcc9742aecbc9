// The whole graph in a corner, and a coarse picture of it for what moves.

import { element } from "./elements.js";
import { fillOf } from "./paint.js";
import { themeColours } from "./theme.js";

const LARGEST = 1600; // pixels of the coarse picture along its longer side
const SIZE = { width: 132, height: 168 };

export class Minimap {
  constructor(pane) {
    this.pane = pane;
    this.canvas = element("canvas", undefined, "map");
    this.canvas.setAttribute("aria-hidden", "true");
    const go = (event) => event.buttons && this.go(event.offsetX, event.offsetY);
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      go(event);
    });
    this.canvas.addEventListener("pointermove", go);
  }

  resize(ratio) {
    this.ratio = ratio;
    this.changed();
  }

  // The map is as wide and as high as the graph's form needs, within its size.
  changed() {
    const { scene } = this.pane;
    if (!scene) return;
    this.picture = null;
    this.coarse = null;
    this.scale = Math.min(SIZE.width / (scene.width + 1), SIZE.height / (scene.height + 1));
    this.width = Math.max(36, Math.min(SIZE.width, scene.width * this.scale));
    this.height = Math.max(36, Math.min(SIZE.height, scene.height * this.scale));
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = this.width * (this.ratio || 1);
    this.canvas.height = this.height * (this.ratio || 1);
  }

  repaint() {
    this.picture = null;
    this.coarse = null;
  }

  go(x, y) {
    const { pane } = this;
    pane.x = pane.width / 2 - ((x - this.left()) / this.scale) * pane.scale;
    pane.y = pane.height / 2 - (y / this.scale) * pane.scale;
    pane.draw(true);
  }

  left() {
    return (this.width - this.pane.scene.width * this.scale) / 2;
  }

  // Where the whole graph is in view, a map of it only hides a part.
  isNeeded() {
    const { x, y, scale, scene, width, height } = this.pane;
    return x < 0 || y < 0 || x + scene.width * scale > width || y + scene.height * scale > height;
  }

  draw() {
    const { pane } = this;
    const pen = this.canvas.getContext("2d");
    this.canvas.style.visibility = this.isNeeded() ? "visible" : "hidden";
    if (!this.picture) this.picture = this.paint(this.scale * (this.ratio || 1));
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.picture, this.left() * (this.ratio || 1), 0);
    pen.setTransform(this.ratio || 1, 0, 0, this.ratio || 1, 0, 0);
    pen.strokeStyle = themeColours().mark;
    pen.lineWidth = 1.5;
    const factor = this.scale / pane.scale;
    const [x, y] = [this.left() - pane.x * factor, -pane.y * factor];
    pen.strokeRect(Math.max(1, x), Math.max(1, y), Math.min(this.width - 2, pane.width * factor + Math.min(0, x)),
      Math.max(3, Math.min(this.height - 2, pane.height * factor + Math.min(0, y))));
  }

  paint(scale) {
    const { pane } = this;
    const canvas = element("canvas");
    canvas.width = Math.max(1, pane.scene.width * scale);
    canvas.height = Math.max(1, pane.scene.height * scale);
    const pen = canvas.getContext("2d");
    const colours = themeColours();
    for (const item of pane.scene.items) {
      pen.fillStyle = item.open ? colours.group : fillOf(pane, item.id) || colours.edge;
      pen.fillRect(item.x * scale, item.y * scale, Math.max(1, item.width * scale), Math.max(1, item.height * scale));
    }
    return canvas;
  }

  overview() {
    if (!this.coarse) {
      const scale = Math.min(1, LARGEST / Math.max(this.pane.scene.width, this.pane.scene.height));
      this.coarse = { canvas: this.paint(scale), scale };
    }
    return this.coarse;
  }
}
