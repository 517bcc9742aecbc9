// Small helpers for the page's elements. Text of a model reaches the page by textContent only, never as HTML.

export const byId = (id) => document.getElementById(id);

export function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

export function button(text, act, title) {
  const made = element("button", text);
  made.type = "button";
  if (title) made.title = title;
  made.addEventListener("click", act);
  return made;
}

export function list(entries) {
  const made = element("dl");
  entries.forEach(([name, value]) => {
    const shown = element("dd");
    shown.append(value);
    made.append(element("dt", name), shown);
  });
  return made;
}

export function save(name, blob) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export const shortened = (text, most) => (text.length <= most ? text : `...${text.slice(3 - most)}`);

export function number(value) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 1e5) return Number(value.toPrecision(4)).toLocaleString("en", { notation: "compact", maximumFractionDigits: 2 });
  if (size && size < 1e-3) return value.toExponential(2);
  return Number(value.toPrecision(5)).toLocaleString("en", { maximumFractionDigits: 6 });
}
