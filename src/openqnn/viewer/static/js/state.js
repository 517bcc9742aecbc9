// What is chosen on the page, for all panes.

export const state = {
  data: null, // what Python wrote into the page
  panes: [], // those that are shown
  overlays: [], // chosen ones: { title, least, turn }; the first fills the nodes
  hits: null, // sets of nodes that the search found, one for each pane
  only: false, // only what differs
};

export const drawAll = () => state.panes.forEach((pane) => pane.draw());

const watchers = [];
export const onSelect = (act) => watchers.push(act);
export const selected = (pane, item) => watchers.forEach((act) => act(pane, item));

let uncover = () => {};
export const onReveal = (act) => (uncover = act);
export const reveal = (pane) => uncover(pane); // a graph that is hidden comes into view

export function say(text) {
  document.getElementById("said").textContent = text;
}
