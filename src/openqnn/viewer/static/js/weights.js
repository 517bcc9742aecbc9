// Statistics and histograms of constants: from the page, or from the server that it came from.

import { element, list, number } from "./elements.js";

const known = new Map();
const isServed = location.protocol.startsWith("http");

// What is known of a tensor at once; and where it has to be read, a promise of it.
export function statistics(tensor, pane) {
  if (tensor.statistics || !tensor.constant || !isServed) return Promise.resolve(tensor.statistics);
  const token = new URLSearchParams(location.search).get("token");
  const asked = new URLSearchParams({ token, pane, tensor: tensor.name });
  for (const [name, value] of new URLSearchParams(location.search)) if (name !== "token") asked.append(name, value);
  const address = `weight?${asked}`;
  if (!known.has(address)) known.set(address, fetch(address).then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.status)))));
  return known.get(address);
}

export function weightBox(tensor, pane) {
  const box = element("div", undefined, "weight");
  if (tensor.statistics) show(box, tensor.statistics);
  else if (tensor.constant && isServed) {
    box.append(element("span", "reading ...", "dim"));
    statistics(tensor, pane).then((found) => show(box, found), () => box.replaceChildren(element("span", "the server is gone: its numbers cannot be read", "dim")));
  }
  return box;
}

function show(box, { histogram, ...figures }) {
  const lines = Object.entries(figures).filter(([name, value]) => name !== "not finite" || value);
  const text = (value) => (Array.isArray(value) ? value.map(number).join(", ") : number(value));
  box.replaceChildren(list(lines.map(([name, value]) => [name, text(value)])));
  if (histogram) box.append(bars(histogram, figures));
}

function bars(counts, { min, max }) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("class", "histogram");
  svg.setAttribute("viewBox", `0 0 ${counts.length} 1`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `histogram of ${counts.length} bins from ${min} to ${max}`);
  const most = Math.max(...counts);
  counts.forEach((count, index) => {
    const bar = document.createElementNS(space, "rect");
    const height = count ? Math.max(0.02, count / most) : 0;
    Object.entries({ x: index + 0.05, y: 1 - height, width: 0.9, height }).forEach(([name, value]) => bar.setAttribute(name, value));
    svg.append(bar);
  });
  const ends = element("div", undefined, "ends");
  ends.append(element("span", number(min)), element("span", number(max)));
  const both = document.createDocumentFragment();
  both.append(svg, ends);
  return both;
}
