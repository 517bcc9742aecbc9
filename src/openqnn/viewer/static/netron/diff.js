// The form of a comparison, and the jobs of those that were started.

byId("to-start").href = withToken("/");
data.files.forEach((name) => {
  const option = element("option");
  option.value = name;
  byId("paths").append(option);
});
data.uses.forEach((use) => byId("use_case").append(element("option", use)));
data.saved.forEach((name) => byId("saved").append(element("option", name)));

const values = new Map(); // of all fields, also of those that are not shown now
const allFields = data.sections.flatMap((section) => section.fields);
allFields.forEach((field) => values.set(field.id, field.default));
const idOf = (field) => `field-${field.id}`;
const shown = (field) => field.only.every(([name, fitting]) => fitting.includes(values.get(name)));
const deviceOf = (field) => values.get(`${field.id.split(".")[0]}.target_device`);

// On the host and on a device there are other runtimes and another architecture.
function choicesOf(field) {
  if (field.id.endsWith(".runtime")) return data.runtimes[deviceOf(field)];
  if (field.id.endsWith(".architecture")) return data.architectures[deviceOf(field)];
  return field.choices;
}

function control(field) {
  if (field.kind === "choice") {
    const made = element("select");
    const choices = choicesOf(field);
    choices.forEach((choice) => made.append(element("option", choice)));
    if (!choices.includes(values.get(field.id))) values.set(field.id, choices[0]);
    made.value = values.get(field.id);
    return made;
  }
  const made = element("input");
  made.type = "text";
  made.autocomplete = "off";
  made.spellcheck = false;
  if (field.kind === "number") made.inputMode = "decimal";
  if (field.kind === "file") {
    made.setAttribute("list", listFor(field.suffixes));
    made.placeholder = "choose a file";
  }
  if (field.kind === "folder") made.placeholder = "a folder";
  if (field.kind === "place") made.placeholder = "a file or a folder";
  made.value = values.get(field.id);
  return made;
}

// A list of the files that fit, one for each set of suffixes.
function listFor(suffixes) {
  const id = `paths-${suffixes.join("-").replace(/[^a-z-]/g, "")}`;
  if (byId(id)) return id;
  const made = element("datalist");
  made.id = id;
  data.files.filter((name) => suffixes.some((end) => name.endsWith(end))).forEach((name) => {
    const option = element("option");
    option.value = name;
    made.append(option);
  });
  document.body.append(made);
  return id;
}

function row(field) {
  const made = element("div", undefined, "row");
  const label = element("label", `${field.required ? "*" : ""}${field.label}:`);
  const box = control(field);
  box.id = idOf(field);
  box.name = field.id;
  label.htmlFor = box.id;
  const problem = element("p", "", "problem");
  problem.id = `problem-${field.id}`;
  problem.setAttribute("role", "alert");
  box.setAttribute("aria-describedby", problem.id);
  box.addEventListener("input", () => {
    values.set(field.id, box.value);
    tell(field.id, "");
    const architecture = field.id.replace(/target_device$/, "architecture");
    if (architecture !== field.id) values.set(architecture, data.architectures[box.value][0]);
    if (allFields.some((other) => other.only.some(([name]) => name === field.id)) || field.id.endsWith(".target_device")) render(field.id);
  });
  made.append(label, box, problem);
  if (field.note) made.append(element("p", field.note, "dim note"));
  return made;
}

function render(focused) {
  const use = byId("use_case").value;
  const boxes = data.sections.filter((section) => section.uses.includes(use)).map((section) => {
    const made = element("fieldset");
    made.append(element("legend", section.title), ...section.fields.filter(shown).map(row));
    return made;
  });
  byId("sections").replaceChildren(...boxes);
  if (focused) byId(`field-${focused}`)?.focus();
}

function tell(id, text) {
  const place = byId(`problem-${id}`);
  if (!place) return false;
  place.textContent = text;
  byId(`field-${id}`)?.setAttribute("aria-invalid", text ? "true" : "false");
  return true;
}

function asked() {
  const fields = { use_case: byId("use_case").value };
  const use = fields.use_case;
  data.sections.filter((section) => section.uses.includes(use)).forEach((section) =>
    section.fields.filter(shown).forEach((field) => (fields[field.id] = values.get(field.id))));
  return fields;
}

// One message next to each field that cannot stay so; the first of them gets the focus.
function tellProblems(answer) {
  document.querySelectorAll(".problem").forEach((place) => (place.textContent = ""));
  document.querySelectorAll("[aria-invalid=true]").forEach((box) => box.setAttribute("aria-invalid", "false"));
  const problems = Object.entries(answer.problems || {});
  problems.forEach(([id, text]) => tell(id, text));
  document.querySelector("[aria-invalid=true]")?.focus();
  const count = `${problems.length} field${problems.length > 1 ? "s" : ""} cannot stay so`;
  byId("said").textContent = answer.error || (problems.length ? count : "");
  return !answer.error && !problems.length;
}

byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await send("/run", { fields: asked() });
  if (tellProblems(answer)) byId("said").textContent = `run ${answer.run.name} was started`;
  refresh();
});
byId("save-now").addEventListener("click", async () => {
  const answer = await send("/save", { fields: asked() });
  if (tellProblems(answer)) byId("said").textContent = `saved: ${answer.saved}`;
});
byId("use_case").addEventListener("change", () => render());

function fill(answer) {
  if (answer.error) return (byId("said").textContent = answer.error);
  Object.entries(answer.fields).forEach(([id, text]) => values.set(id, text));
  if (data.uses.includes(answer.fields.use_case)) byId("use_case").value = answer.fields.use_case;
  render();
  byId("said").textContent = "the saved fields are in the form";
}

byId("saved").addEventListener("change", async () => {
  if (byId("saved").value) fill(await send("/load", { path: byId("saved").value }));
});
byId("load").addEventListener("change", async () => {
  const [file] = byId("load").files;
  if (file && file.size < 1e6) fill(await send("/load", { text: await file.text() }));
  else if (file) byId("said").textContent = "this file is too large for a configuration";
  byId("load").value = "";
});
byId("load-label").addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === " ") byId("load").click();
});

function jobRow(run, job, index) {
  const made = element("div", undefined, `job ${job.state}`);
  const bar = element("progress");
  bar.max = 1;
  bar.value = job.progress;
  bar.setAttribute("aria-label", `progress of ${job.title}`);
  made.append(element("b", job.title), element("span", job.state, "state"), bar, element("code", job.line));
  if (job.state === "running" || job.state === "waiting") {
    const stop = element("button", "Cancel");
    stop.type = "button";
    stop.setAttribute("aria-label", `Cancel ${job.title}`);
    stop.addEventListener("click", async () => {
      await send("/cancel", { run: run.number, job: index });
      refresh();
    });
    made.append(stop);
  }
  if (job.tail.length) made.append(element("pre", job.tail.join("\n")));
  return made;
}

function runBox(run) {
  const made = element("article", undefined, "run");
  const head = element("h3", `${run.use_case}, ${run.name}: ${run.state}`);
  made.append(head, ...run.jobs.map((job, index) => jobRow(run, job, index)));
  if (run.state === "done") {
    const link = element("a", "Show the differences", "button main");
    link.href = withToken(`/result?run=${run.number}`);
    made.append(link);
    const list = element("ul", undefined, "folders dim");
    Object.entries(run.folders).forEach(([name, place]) => list.append(element("li", `${name}: ${place}`)));
    made.append(list);
  }
  return made;
}

let last = "";
let timer = 0;

// Redrawn only when something is new, so that the keyboard's place stays.
async function refresh() {
  clearTimeout(timer);
  const answer = await fetch(withToken("/runs"));
  if (!answer.ok) return;
  const { runs } = await answer.json();
  const text = JSON.stringify(runs);
  if (text !== last) {
    last = text;
    byId("runs").replaceChildren(...runs.slice().reverse().map(runBox));
    if (!runs.length) byId("runs").append(element("p", "None was started yet.", "dim"));
  }
  timer = setTimeout(refresh, runs.some((run) => run.state === "running") ? 400 : 3000);
}

render();
refresh();
