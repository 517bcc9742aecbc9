// The start of the page: panes from what Python wrote into it, and what the controls do.

import { followElsewhere, nextDifference, showOnlyChanged, startOver, takeDifferences } from "./differences.js";
import { byId, element } from "./elements.js";
import { clearPrint, preparePrint, savePng, saveSvg } from "./export_graph.js";
import { closeAll, listenToGraph, listenToPage, openAll } from "./keys.js";
import { addOverlay, fillChoices, forgetScales, nextWorst, refresh } from "./overlays.js";
import { Pane } from "./pane.js";
import { startChoice } from "./pane_choice.js";
import { describe, describeFirst } from "./panel.js";
import { nextPass, startPasses } from "./passes.js";
import { find, listenToSearch } from "./search.js";
import { drawAll, onSelect, selected, state } from "./state.js";
import { isDark, setTheme } from "./theme.js";

function readData() {
  const data = JSON.parse(byId("data").textContent);
  // Records that several panes share stand in the page once.
  if (data.pool) data.panes.forEach((pane) => (pane.nodes = pane.nodes.map((node) => data.pool[node])));
  return data;
}

// Shows some of the page's graphs side by side; `titles` name them anew.
function showPanes(numbers, titles = []) {
  const { data } = state;
  byId("panes").replaceChildren();
  state.panes = numbers.map((number, index) => new Pane({ ...data.panes[number], title: titles[index] || data.panes[number].title }, index, number));
  state.panes.forEach(listenToGraph);
  const between = numbers.slice(1).map((number, index) => diffOf(numbers[index], number));
  startChoice();
  takeDifferences(between.some((diff) => !diff) ? [] : between);
  startOver();
  forgetScales();
  fillChoices();
  refresh();
  find();
  describeFirst();
  if (state.only) showOnlyChanged(true);
}

// Neighbours were compared by Python; a graph that a pass left as it is, is its own neighbour.
function diffOf(a, b) {
  if (b === a + 1) return state.data.diffs[a];
  if (a !== b) return null;
  return { pairs: state.data.panes[a].nodes.map((_, node) => [node, node]), left: {}, right: {} };
}

onSelect((pane, item) => {
  state.panes.forEach((each) => (each.selected = each === pane ? item : -1));
  if (item >= 0) pane.show(item);
  followElsewhere(pane, item);
  describe(pane, item);
  drawAll();
});

function changeTheme(dark) {
  setTheme(dark);
  byId("theme").textContent = isDark() ? "Light" : "Dark";
  state.panes.forEach((pane) => pane.minimap.repaint());
  drawAll();
}

function listen() {
  listenToSearch();
  byId("overlay").addEventListener("change", () => {
    addOverlay(byId("overlay").value);
    byId("overlay").value = "";
  });
  byId("next").addEventListener("click", () => nextDifference(1));
  byId("previous").addEventListener("click", () => nextDifference(-1));
  byId("only").addEventListener("change", () => showOnlyChanged(byId("only").checked));
  byId("open").addEventListener("click", () => state.panes.forEach(openAll));
  byId("close").addEventListener("click", () => state.panes.forEach(closeAll));
  byId("fit").addEventListener("click", () => state.panes.forEach((pane) => pane.fit()));
  byId("svg").addEventListener("click", saveSvg);
  byId("png").addEventListener("click", savePng);
  byId("print").addEventListener("click", () => print());
  byId("theme").addEventListener("click", () => changeTheme(!isDark()));
  byId("show-help").addEventListener("click", () => byId("help").showModal());
  addEventListener("beforeprint", preparePrint);
  addEventListener("afterprint", clearPrint);
  addEventListener("hashchange", goToAddress);
  listenToPage({ t: () => changeTheme(!isDark()), "]": () => nextPass(1), "[": () => nextPass(-1), W: () => state.overlays[1] && nextWorst(state.overlays[1]) });
}

// Libraries know a node by a name that C takes.
const inC = (name) => name.replace(/[^\p{L}\p{N}_]/gu, "_").replace(/^_+/, "");

// An address that ends in #node=NAME leads to the node of this name, or to that which makes or reads the tensor.
function goToAddress() {
  const name = new URLSearchParams(location.hash.slice(1)).get("node");
  if (!name) return;
  const tests = [(node) => node.name === name, (node) => node.keys.includes(name), (node) => node.inputs.some((tensor) => tensor.name === name), (node) => inC(node.name) === inC(name)];
  for (const test of tests) {
    for (const pane of state.panes) {
      const node = pane.nodes.findIndex(test);
      if (node < 0) continue;
      pane.show(node, true);
      return selected(pane, node);
    }
  }
}

function showWayBack() {
  const link = element("a", "Start page", "button");
  link.href = `/?${new URLSearchParams({ token: new URLSearchParams(location.search).get("token") || "" })}`;
  document.querySelector("header").prepend(link);
}

function start() {
  state.data = readData();
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
  if (!state.data.panes.length) return byId("panel").append(element("p", "There is no graph to show."));
  listen();
  if (state.data.home) showWayBack();
  if (state.data.passes) startPasses(state.data.passes, showPanes);
  else showPanes(state.data.panes.map((_, index) => index));
  addOverlay(state.data.shown);
  changeTheme(isDark());
  goToAddress();
  document.title = `${state.data.panes.slice(0, 4).map((pane) => pane.title).join(" | ")} - OpenQNN viewer`;
}

start();
