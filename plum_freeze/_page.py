"""The frame of the HTML page: layout, style and the few lines of script that sort and search."""

from __future__ import annotations

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>plum_freeze: {title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>plum functions, as plum_freeze sees them</p>
<ul class="numbers">{numbers}</ul>
</header>
<main>{body}</main>
<script>{script}</script>
</body>
</html>
"""

STYLE = """
:root { color-scheme: light dark; --text: #1d2433; --soft: #5d6880; --ground: #fbfbfd; --card: #fff;
  --line: #dfe3ec; --own: #3d6fd1; --foreign: #d9822b; --quiet: #c7cede; --on-bar: #fff; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8f1; --soft: #98a3b8; --ground: #12151c;
  --card: #1a1f2a; --line: #2d3545; --own: #6f9bf0; --foreign: #f0a35b; --quiet: #39445a;
  --on-bar: #0d1017; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1.5rem; color: var(--text); background: var(--ground);
  font: 14px/1.45 system-ui, sans-serif; }
header, main { max-width: 1240px; margin: 0 auto; }
h1 { margin: 0; font-size: 1.7rem; } h2 { margin: 0 0 .8rem; font-size: 1.15rem; }
header p { margin: 0; color: var(--soft); }
.numbers { display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; padding: 0; margin: .9rem 0 1.2rem;
  list-style: none; }
.numbers b { font-size: 1.25rem; margin-right: .15rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1rem 1.2rem; margin-bottom: 1.2rem; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--text); }
svg .count, svg text.tick { fill: var(--soft); }
svg line.tick { stroke: var(--line); }
.band { fill: var(--own); opacity: .3; transition: opacity .15s; }
.band.foreign { fill: var(--foreign); }
.band:hover, .band.lit { opacity: .8; } svg.picking .band:not(.lit) { opacity: .06; }
.node rect { fill: var(--own); } .node.foreign rect { fill: var(--foreign); }
.node { cursor: pointer; outline: none; }
.node:hover text, .node:focus text { text-decoration: underline; }
.quiet rect { fill: var(--quiet); } .registers rect { fill: var(--own); }
.registers text { fill: var(--on-bar); }
.scroll { overflow: auto; max-height: 36rem; }
table { border-collapse: collapse; width: 100%; margin-top: .6rem; }
th { position: sticky; top: 0; background: var(--card); text-align: left; white-space: nowrap;
  border-bottom: 2px solid var(--line); }
th button { font: inherit; font-weight: 600; color: inherit; background: none; border: 0;
  padding: .35rem .5rem .35rem 0; cursor: pointer; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
td { padding: .35rem .9rem .35rem 0; vertical-align: top; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
.tight { white-space: nowrap; } td i { color: var(--soft); }
code { font: 12.5px ui-monospace, monospace; }
input { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line);
  border-radius: 6px; padding: .25rem .5rem; width: 18rem; max-width: 60vw; }
.shown { color: var(--soft); margin-left: .8rem; }
"""

SCRIPT = """
"use strict";
for (const input of document.querySelectorAll("input[data-table]")) {
  const rows = [...document.getElementById(input.dataset.table).tBodies[0].rows];
  const shown = document.querySelector(`[data-for="${input.dataset.table}"]`);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      count += !row.hidden;
    }
    shown.textContent = `${count} of ${rows.length} rows`;
  });
}
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement, table = head.closest("table"), body = table.tBodies[0];
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const text = row => row.cells[head.cellIndex].textContent;
    const order = (a, b) => text(a).localeCompare(text(b), "en", { numeric: true });
    body.append(...[...body.rows].sort((a, b) => up ? order(a, b) : order(b, a)));
  });
}
for (const node of document.querySelectorAll("g.node")) {
  const svg = node.closest("svg"), side = node.dataset.left === undefined ? "right" : "left";
  const pick = on => {
    svg.classList.toggle("picking", on);
    for (const band of svg.querySelectorAll(".band"))
      band.classList.toggle("lit", on && band.dataset[side] === node.dataset[side]);
  };
  for (const event of ["mouseenter", "focus"]) node.addEventListener(event, () => pick(true));
  for (const event of ["mouseleave", "blur"]) node.addEventListener(event, () => pick(false));
}
"""
