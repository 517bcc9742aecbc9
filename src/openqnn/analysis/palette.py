"""The style that all pages share, the viewer's and the reports': colours in light and dark, fonts, tables."""

from __future__ import annotations

from html import escape
from typing import Final
from urllib.parse import quote

LIGHT: Final = {
    "back": "#f4f6f9", "card": "#fff", "ink": "#1c2430", "dim": "#55606f", "line": "#7d8898",
    "edge": "#a9b3c0", "mark": "#0b57d0", "group": "#e7ecf3", "added": "#137333", "removed": "#b3261e",
    "changed": "#8a5000",
}  # fmt: skip
DARK: Final = {
    "back": "#14181f", "card": "#1e242d", "ink": "#e6eaf0", "dim": "#a9b3c1", "line": "#77839a",
    "edge": "#4c5768", "mark": "#8ab4f8", "group": "#1b212b", "added": "#81c995", "removed": "#f28b82",
    "changed": "#fdd663",
}  # fmt: skip
"""The colours of the viewer's graph page, by the names that they have there."""


def _variables(colours: dict[str, str], on_mark: str, scheme: str) -> str:
    named = " ".join(f"--{name}: {colour};" for name, colour in colours.items())
    return f"{{ {named} --on-mark: {on_mark}; color-scheme: {scheme}; }}"


PALETTE: Final = (
    f":root {_variables(LIGHT, '#fff', 'light')}\n:root.dark {_variables(DARK, '#14181f', 'dark')}\n"
)

_ROLES: Final = """
:root { --bar: var(--mark); --bad: var(--removed); --good: var(--added); --goal: var(--changed); }
"""
REPORT_STYLE: Final = f"""
:root {_variables(LIGHT, "#fff", "light")}
@media (prefers-color-scheme: dark) {{ :root {_variables(DARK, "#14181f", "dark")} }}
{_ROLES}
body {{ font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
  color: var(--ink); background: var(--back); overflow-wrap: break-word; }}
h1 {{ font-size: 1.5rem; margin-bottom: .3rem; }} h2 {{ font-size: 1.15rem; margin-top: 2.2rem; }}
a {{ color: var(--mark); }} :focus-visible {{ outline: 2px solid var(--mark); outline-offset: 1px; }}
table {{ border-collapse: collapse; width: 100%; background: var(--card); }}
th, td {{ border-bottom: 1px solid var(--edge); padding: .3rem .5rem; text-align: left; }}
thead th {{ position: sticky; top: 0; background: var(--group); cursor: pointer; }}
th[aria-sort]::after {{ content: " \\25B4"; }} th[aria-sort="descending"]::after {{ content: " \\25BE"; }}
td.n, th.n, .n {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
td.name {{ font-family: ui-monospace, monospace; font-size: 12px; }}
td.name, td.long, td:has(> a) {{ overflow-wrap: anywhere; min-width: 11rem; }}
.bad {{ color: var(--bad); font-weight: 600; }} .good {{ color: var(--good); font-weight: 600; }}
.scroll {{ overflow-x: auto; }} svg text {{ fill: currentColor; }}
input {{ font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line);
  border-radius: 5px; padding: .3rem .5rem; width: 20rem; max-width: 100%; margin: .5rem 0; }}
"""
"""What every report looks like; light or dark as the reader's system is."""
REPORT_SCRIPT: Final = """
for (const table of document.querySelectorAll('table')) {
  const heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
  const key = (row, i) => {
    const { dataset, textContent } = row.cells[i];
    const text = dataset.v ?? textContent.replaceAll(',', '').replace(/ ?(%|dB|us|ms|MB|B)$/, '');
    return text.trim() === '' || isNaN(+text) ? textContent : +text;
  };
  const order = (a, b) => (typeof a === typeof b ? (a > b) - (a < b) : typeof a === 'number' ? -1 : 1);
  const sort = (i) => {
    const up = heads[i].ariaSort !== 'ascending';
    heads.forEach((head) => head.removeAttribute('aria-sort'));
    heads[i].setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const rows = [...table.tBodies[0].rows].sort((a, b) => order(key(a, i), key(b, i)));
    table.tBodies[0].append(...(up ? rows : rows.reverse()));
  };
  heads.forEach((head, i) => {
    head.tabIndex = 0;
    head.addEventListener('click', () => sort(i));
    head.addEventListener('keydown', (event) => event.key === 'Enter' && sort(i));
  });
}
const find = document.querySelector('#find');
if (find) find.addEventListener('input', () => {
  const word = find.value.toLowerCase();
  const rows = document.querySelector('#all tbody').rows;
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(word);
});
"""
"""Tables are sorted by a click or Enter on a head; the field `find` filters the table `all`."""


def node_address(name: str, view: str) -> str:
    """The address of a node in the viewer's page that lies beside a report, for an attribute of HTML."""
    return f"{escape(quote(view), quote=True)}#node={quote(name, safe='')}"


def node_link(shown: str, view: str, name: str = "") -> str:
    """What is shown of a node as HTML: a link to it in the viewer's page, where there is one, by its name."""
    if not view:
        return escape(shown)
    return f'<a href="{node_address(name or shown, view)}">{escape(shown)}</a>'
