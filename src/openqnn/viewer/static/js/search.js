// Search by name, op, type, shape, parameter and source; words may name where they are sought: op:conv dtype:int8.

import { byId, element } from "./elements.js";
import { drawAll, selected, state } from "./state.js";

const MOST = 60; // rows of the list
const LEAST = 3; // letters from which names are searched for letters in order
const FIELDS = ["name", "op", "dtype", "param", "source"];

let found = []; // { pane, node, score } from the best on
let turn = -1;

const texts = new WeakMap();

// What there is to find at a node, by field; made when it is first sought.
function fieldsOf(node) {
  if (texts.has(node)) return texts.get(node);
  const tensors = [...node.inputs, ...node.outputs];
  const made = {
    name: [node.name, ...tensors.map((tensor) => tensor.name)].join(" ").toLowerCase(),
    op: node.op.toLowerCase(),
    dtype: tensors.map((tensor) => `${tensor.dtype} ${(tensor.shape || []).join("x")} ${tensor.encoding || ""}`).join(" ").toLowerCase(),
    param: Object.entries(node.params).map(([name, value]) => `${name}=${value}`).join(" ").toLowerCase(),
    source: node.source.toLowerCase(),
    own: node.name.toLowerCase(),
  };
  texts.set(node, made);
  return made;
}

// The letters in their order; the fewer others between them, the better. 0 where they are not all there.
function fuzzy(text, sought) {
  let place = text.indexOf(sought[0]);
  const first = place;
  for (let i = 1; i < sought.length && place >= 0; i += 1) place = text.indexOf(sought[i], place + 1);
  return place < 0 ? 0 : sought.length / (place - first + 1);
}

function scoreOf(fields, word) {
  const [field, rest] = word.includes(":") ? [word.slice(0, word.indexOf(":")), word.slice(word.indexOf(":") + 1)] : ["", ""];
  if (FIELDS.includes(field)) return fields[field].includes(rest) ? 2 : 0;
  if (fields.own === word) return 6;
  if (fields.own.includes(word)) return 4 - fields.own.indexOf(word) / 1000;
  if (fields.op.includes(word)) return 3;
  if (FIELDS.some((each) => fields[each].includes(word))) return 2;
  const letters = word.length >= LEAST ? Math.max(fuzzy(fields.own, word), fuzzy(fields.op, word)) : 0;
  return letters > 0.3 ? letters : 0;
}

export function find() {
  const words = byId("find").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  found = [];
  turn = -1;
  if (words.length) state.panes.forEach((pane) => pane.nodes.forEach((node, index) => {
    const scores = words.map((word) => scoreOf(fieldsOf(node), word));
    if (scores.every(Boolean)) found.push({ pane, node: index, score: scores.reduce((a, b) => a + b) });
  }));
  found.sort((a, b) => b.score - a.score || a.pane.index - b.pane.index || a.node - b.node);
  state.hits = words.length ? state.panes.map((pane) => new Set(found.filter((each) => each.pane === pane).map((each) => each.node))) : null;
  byId("hits").textContent = words.length ? `${found.length.toLocaleString("en")} found` : "";
  showList();
  drawAll();
}

function showList() {
  const box = byId("found");
  box.hidden = !found.length;
  byId("find").setAttribute("aria-expanded", String(!box.hidden));
  byId("find").removeAttribute("aria-activedescendant");
  box.replaceChildren(...found.slice(0, MOST).map(row));
}

function row(each, index) {
  const made = element("li");
  made.id = `found-${index}`;
  made.setAttribute("role", "option");
  made.setAttribute("aria-selected", "false");
  const node = each.pane.nodes[each.node];
  made.append(element("b", node.op), element("span", node.name));
  if (state.panes.length > 1) made.append(element("span", each.pane.title, "dim"));
  made.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    go(index);
    hideList();
  });
  return made;
}

function go(index) {
  turn = (index + found.length) % found.length;
  const { pane, node } = found[turn];
  byId("found").querySelectorAll("[aria-selected=true]").forEach((each) => each.setAttribute("aria-selected", "false"));
  const chosen = byId(`found-${turn}`);
  if (chosen) {
    chosen.setAttribute("aria-selected", "true");
    chosen.scrollIntoView({ block: "nearest" });
    byId("find").setAttribute("aria-activedescendant", chosen.id);
  }
  byId("hits").textContent = `${turn + 1} of ${found.length.toLocaleString("en")}`;
  pane.show(node, true);
  selected(pane, node);
}

export function nextHit(step = 1) {
  if (found.length) go(turn < 0 && step < 0 ? found.length - 1 : turn + step);
}

export function hideList() {
  byId("found").hidden = true;
  byId("find").setAttribute("aria-expanded", "false");
}

export function listenToSearch() {
  const field = byId("find");
  field.addEventListener("input", find);
  field.addEventListener("focus", () => field.value && showList());
  field.addEventListener("blur", hideList);
  field.addEventListener("keydown", (event) => {
    const keys = { Enter: () => nextHit(event.shiftKey ? -1 : 1), ArrowDown: () => nextHit(1), ArrowUp: () => nextHit(-1), Escape: leave };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}

// The first Escape closes the list, the second one ends the search.
function leave() {
  if (!byId("found").hidden) return hideList();
  byId("find").value = "";
  find();
  state.panes[0].canvas.focus();
}
