"use strict";
// What the pages of qnn-netron share. Names reach a page by textContent only, never as HTML.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token") || "";
const withToken = (path) => `${path}${path.includes("?") ? "&" : "?"}token=${encodeURIComponent(token)}`;

function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

async function send(path, content) {
  const answer = await fetch(withToken(path), { method: "POST", body: JSON.stringify(content), headers: { "Content-Type": "application/json" } });
  return answer.ok ? answer.json() : { error: `the server answers ${answer.status}` };
}

function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  byId("theme").textContent = dark ? "Light" : "Dark";
  try { localStorage.setItem("openqnn-theme", dark ? "dark" : "light"); } catch { /* a page without storage */ }
}

function chosenTheme() {
  try {
    const kept = localStorage.getItem("openqnn-theme");
    if (kept) return kept === "dark";
  } catch { /* a page without storage */ }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

setTheme(chosenTheme());
byId("theme").addEventListener("click", () => setTheme(!document.documentElement.classList.contains("dark")));
byId("folder").textContent = data.folder;
