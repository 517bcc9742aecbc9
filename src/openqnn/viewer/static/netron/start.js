// The start page: files of the folder, and comparisons that were made before.

byId("token").value = token;
byId("problem").textContent = data.problem || "";
byId("to-diff").href = withToken("/diff");

const rows = (data.files || []).map((file) => {
  const row = element("li");
  const label = element("label");
  const box = element("input");
  box.type = "checkbox";
  box.name = "file";
  box.value = String(file.number);
  label.append(box, element("span", file.name), element("span", `${file.bytes.toLocaleString("en")} bytes`, "dim"));
  row.append(label);
  return row;
});
byId("files").append(...rows);
if (!rows.length) byId("files").append(element("li", "There is no model in this folder: -w names another.", "dim"));

function count() {
  const chosen = rows.filter((row) => row.querySelector("input").checked).length;
  byId("count").textContent = chosen ? `${chosen} chosen` : "";
}

byId("files").addEventListener("change", count);
byId("find").addEventListener("input", () => {
  const sought = byId("find").value.toLowerCase();
  rows.forEach((row) => (row.hidden = !row.textContent.toLowerCase().includes(sought)));
});
byId("open").addEventListener("submit", (event) => {
  if (rows.some((row) => row.querySelector("input").checked)) return;
  event.preventDefault();
  byId("count").textContent = "choose at least one file";
});

(data.recent || []).forEach((run) => {
  const row = element("li");
  const link = element("a", run.name);
  link.href = withToken(`/result?recent=${run.number}`);
  row.append(link);
  byId("recent").append(row);
});
if (!(data.recent || []).length) byId("recent").append(element("li", "No comparison was made in this folder yet.", "dim"));

byId("quit").addEventListener("click", async () => {
  await send("/quit", {});
  document.body.replaceChildren(element("p", "qnn-netron has ended; this page can be closed.", "ended"));
});
