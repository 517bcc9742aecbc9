// Numbers and words of nodes as colours: several at once, each with a scale and a threshold.

import { button, byId, element, number } from "./elements.js";
import { drawAll, selected, state } from "./state.js";
import { heat, RAMPS, WORDS } from "./theme.js";

const WIDE = 1000; // from this ratio on, a scale of positive numbers is logarithmic

const scales = new Map();

// The overlay of a pane by its title, with its range over all panes that have it.
export function overlayOf(pane, title) {
  return pane.overlays.find((each) => each.title === title);
}

function scaleOf(title) {
  if (scales.has(title)) return scales.get(title);
  const all = state.panes.map((pane) => overlayOf(pane, title)).filter(Boolean);
  const numbers = all.flatMap((each) => Object.values(each.values)).filter(Number.isFinite);
  let [low, high] = [Infinity, -Infinity];
  for (const value of numbers) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const positive = numbers.filter((value) => value > 0).reduce((a, b) => Math.min(a, b), Infinity);
  const logarithmic = low >= 0 && high / positive > WIDE;
  const words = [...new Set(all.flatMap((each) => Object.values(each.labels || {})))].sort();
  const found = { low, high, positive, logarithmic, words, unit: all[0]?.unit || "", least: all[0]?.worst === "least" };
  scales.set(title, found);
  return found;
}

export const forgetScales = () => scales.clear();

// From 0 to 1; what is worst is 1.
function shareOf(scale, value) {
  if (scale.high === scale.low) return 1;
  const log = (x) => Math.log(Math.max(x, scale.positive));
  const share = scale.logarithmic
    ? (log(value) - log(scale.positive)) / (log(scale.high) - log(scale.positive))
    : (value - scale.low) / (scale.high - scale.low);
  return scale.least ? 1 - share : share;
}

function valueAt(scale, share) {
  const part = scale.least ? 1 - share : share;
  if (scale.logarithmic) return scale.positive * (scale.high / scale.positive) ** part;
  return scale.low + part * (scale.high - scale.low);
}

// A closed group has the worst of what is in it.
export function overlayColour(pane, item, index) {
  const chosen = state.overlays[index];
  const overlay = overlayOf(pane, chosen.title);
  if (!overlay) return "";
  const scale = scaleOf(chosen.title);
  const names = pane.tree.nodesIn(item).map((node) => pane.names[node]);
  if (overlay.labels) return wordColour(names.map((name) => overlay.labels[name]), scale);
  const shares = names.map((name) => overlay.values[name]).filter((value) => value !== undefined && value !== null).map((value) => shareOf(scale, value));
  if (!shares.length) return "";
  const worst = Math.max(...shares);
  return worst >= chosen.least ? heat(worst, index) : "";
}

function wordColour(found, scale) {
  const words = found.filter(Boolean);
  if (!words.length) return "";
  return WORDS[Math.min(scale.words.indexOf(words[0]), WORDS.length - 1)];
}

export function addOverlay(title) {
  if (!title || state.overlays.some((each) => each.title === title) || state.overlays.length >= RAMPS.length) return;
  state.overlays.push({ title, least: 0, turn: -1 });
  refresh();
}

export function removeOverlay(title) {
  state.overlays = state.overlays.filter((each) => each.title !== title);
  refresh();
}

export function refresh() {
  byId("legends").replaceChildren(...state.overlays.map(legend));
  byId("legends").hidden = !state.overlays.length;
  state.panes.forEach((pane) => pane.minimap.repaint());
  drawAll();
}

function legend(chosen, index) {
  const scale = scaleOf(chosen.title);
  const box = element("div", undefined, "legend");
  box.append(element("strong", chosen.title));
  if (scale.words.length) box.append(...wordKeys(scale.words));
  else box.append(...ramp(chosen, scale, index));
  box.append(button(scale.words.length ? "Next" : "Next worst", () => nextWorst(chosen), ["Key: w", "Key: W"][index] || ""));
  const close = button("\u00d7", () => removeOverlay(chosen.title));
  close.setAttribute("aria-label", `Remove the overlay ${chosen.title}`);
  box.append(close);
  return box;
}

// Words beyond the colours share one, and stand in it.
function wordKeys(words) {
  const own = words.length > WORDS.length ? WORDS.length - 1 : words.length;
  const rest = words.slice(own);
  const keys = words.slice(0, own).map(wordKey);
  if (!rest.length) return keys;
  const more = wordKey(`${rest.length} more`, own);
  more.title = rest.join("\n");
  return [...keys, more];
}

function wordKey(word, index) {
  const key = element("span", undefined, "key");
  const dot = element("i");
  dot.style.background = WORDS[index % WORDS.length];
  key.append(dot, word);
  return key;
}

function ramp(chosen, scale, index) {
  const bar = element("i", undefined, "ramp");
  bar.style.background = `linear-gradient(90deg, ${heat(0, index)}, ${heat(1, index)})`;
  const [first, last] = scale.least ? [scale.high, scale.low] : [scale.low, scale.high];
  const ends = [element("span", number(first)), element("span", `${number(last)} ${scale.unit}${scale.logarithmic ? " (log)" : ""}`)];
  const slider = element("input");
  Object.assign(slider, { type: "range", min: 0, max: 100, value: Math.round(100 * chosen.least) });
  slider.setAttribute("aria-label", `Least of ${chosen.title} that is coloured`);
  const told = element("output", chosen.least ? thresholdText(chosen, scale) : "all");
  slider.addEventListener("input", () => {
    chosen.least = Number(slider.value) / 100;
    told.textContent = chosen.least ? thresholdText(chosen, scale) : "all";
    state.panes.forEach((pane) => pane.minimap.repaint());
    drawAll();
  });
  return [ends[0], bar, ends[1], slider, told];
}

const thresholdText = (chosen, scale) => `${scale.least ? "at most" : "at least"} ${number(valueAt(scale, chosen.least))}`;

// The nodes of an overlay from the worst on, one with each call; of words, those with the rarest word first.
export function nextWorst(chosen = state.overlays[0]) {
  if (!chosen) return;
  const ranked = rankedOf(chosen.title);
  if (!ranked.length) return;
  chosen.turn = (chosen.turn + 1) % ranked.length;
  const { pane, node } = ranked[chosen.turn];
  pane.show(node, true);
  selected(pane, node);
}

// In the first pane that has the overlay: a graph and what became of it would take turns otherwise.
function rankedOf(title) {
  const scale = scaleOf(title);
  const pane = state.panes.find((each) => overlayOf(each, title));
  const overlay = pane && overlayOf(pane, title);
  if (!overlay) return [];
  const known = overlay.labels || overlay.values;
  const found = pane.names.map((name, node) => ({ pane, node, value: known[name] })).filter(({ value }) => value !== undefined && value !== null);
  if (!overlay.labels) return found.sort((a, b) => (scale.least ? a.value - b.value : b.value - a.value));
  const counts = new Map();
  found.forEach(({ value }) => counts.set(value, (counts.get(value) || 0) + 1));
  return found.sort((a, b) => counts.get(a.value) - counts.get(b.value) || (a.value < b.value ? -1 : a.value > b.value ? 1 : 0) || a.node - b.node);
}

export function fillChoices() {
  const titles = new Set(state.panes.flatMap((pane) => pane.overlays.map((each) => each.title)));
  byId("overlay").replaceChildren(new Option("add an overlay ...", ""), ...[...titles].map((title) => new Option(title)));
  byId("overlay").parentElement.hidden = !titles.size;
}
