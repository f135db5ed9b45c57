"use strict";
// The page works without this script but for sorting, filtering and the drawing of graphs.

const byId = (id) => document.getElementById(id);

// -- tables that sort --------------------------------------------------------------------------------

function sortKey(row, column) {
  const cell = row.cells[column];
  const value = cell.dataset.value;
  return value === undefined ? cell.textContent.trim() : Number(value);
}

function compare(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

function sortBy(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const first = heads[column].classList.contains("number") ? "descending" : "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const order = heads[column].getAttribute("aria-sort") === first ? other : first;
  heads.forEach((head, number) => head.setAttribute("aria-sort", number === column ? order : "none"));
  const sign = order === "ascending" ? 1 : -1;
  const keyed = [...table.tBodies[0].rows].map((row) => [sortKey(row, column), row]);
  keyed.sort((a, b) => sign * compare(a[0], b[0]));
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sortBy(table, column));
    head.replaceChildren(button);
  });
}

// -- the filter of loops -----------------------------------------------------------------------------

function filterLoops() {
  const words = byId("filter-text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdict = byId("filter-verdict").value;
  const rows = [...byId("loop-table").tBodies[0].rows];
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = (verdict !== "" && row.dataset.verdict !== verdict) || !words.every((word) => text.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  byId("filter-count").textContent = `${shown} of ${rows.length} loops`;
}

function startFilter() {
  const form = byId("filter");
  if (!form) return;
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", filterLoops);
  filterLoops();
}

// -- links into the source ---------------------------------------------------------------------------

function openTarget() {
  let target = null;
  try {
    target = byId(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return; // no hash of ours
  }
  const file = target && target.closest("details.file");
  if (!file) return;
  file.open = true;
  target.scrollIntoView({ block: "center" });
}

// -- the dependence graph: an arc diagram, accesses in order of the source, arcs to their right -------

const ROW = 24;
const MARGIN = 16;
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function distance(least, greatest) {
  if (least === null) return "";
  return least === greatest ? `${least}` : `${least} to ${greatest}`;
}

function said(edge, names) {
  const [source, destination, kind, count, carried, least, greatest] = edge;
  const where = carried ? `carried, distance ${distance(least, greatest)}` : "within an iteration";
  return `${kind} ${names[source]} to ${names[destination]}: ${count.toLocaleString("en")} times, ${where}`;
}

// `load src/app.c:12:5 main` sorts by file, line and column.
function placeOf(name) {
  const found = /^\S+ (.*?):(\d+):(\d+)(?: |$)/.exec(name);
  return found ? [found[1], Number(found[2]), Number(found[3])] : [name, 0, 0];
}

function inOrder(numbers, names) {
  return [...numbers].sort((a, b) => {
    const [first, second] = [placeOf(names[a]), placeOf(names[b])];
    return compare(first[0], second[0]) || first[1] - second[1] || first[2] - second[2] || a - b;
  });
}

function arc(edge, top, names, left) {
  const [from, to] = [top.get(edge[0]), top.get(edge[1])];
  const reach = from === to ? 20 : 18 + 14 * Math.sqrt(Math.abs(to - from) / ROW) * 2;
  // An arrow leaves a little below the middle of its row and arrives a little above: both ways can be told apart.
  const [start, end] = [from + 4, to - 4];
  const line = `M ${left} ${start} C ${left + reach} ${start}, ${left + reach} ${end}, ${left + 8} ${end}`;
  const head = `M ${left} ${end} l 9 -4 v 8 z`;
  const group = element("g", { class: edge[2].toLowerCase() },
    element("title", {}, said(edge, names)),
    element("path", { d: line, class: edge[2].toLowerCase() }), element("path", { d: head, class: "head" }));
  return [group, reach];
}

function drawing(edges, names) {
  const nodes = inOrder(new Set(edges.flatMap((edge) => edge.slice(0, 2))), names);
  const top = new Map(nodes.map((node, number) => [node, MARGIN + ROW * number]));
  const left = 24 + 7.9 * Math.max(...nodes.map((node) => names[node].length));
  const arcs = edges.map((edge) => arc(edge, top, names, left));
  const width = left + Math.max(...arcs.map(([, reach]) => reach)) + MARGIN;
  const height = 2 * MARGIN + ROW * (nodes.length - 1);
  const labels = nodes.map((node) => element("text", { x: left - 8, y: top.get(node) + 4, "text-anchor": "end" },
    names[node]));
  return element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${nodes.length} accesses and ${edges.length} dependences; the table below says the same` },
  ...labels, ...arcs.map(([group]) => group));
}

function rowsOf(edges, names) {
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const title of ["Kind", "From", "To", "Count", "Carried", "Distance"]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = title;
    cell.className = title === "Count" ? "number" : "";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const [source, destination, kind, count, carried, least, greatest] of edges) {
    const row = body.insertRow();
    const cells = [kind, names[source], names[destination], count.toLocaleString("en"), carried ? "yes" : "no",
      distance(least, greatest)];
    cells.forEach((text, number) => {
      const cell = row.insertCell();
      cell.textContent = text;
      cell.className = number === 3 ? "number" : "";
    });
  }
  return table;
}

function drawGraph(graphs) {
  const loop = graphs.loops[Number(byId("graph-loop").value)];
  const onlyCarried = byId("graph-carried").checked;
  const edges = loop.edges.filter((edge) => !onlyCarried || edge[4]);
  const left = onlyCarried ? loop.more_carried : loop.more;
  const more = left ? ` ${left.toLocaleString("en")} that happened less often are left out.` : "";
  byId("graph-said").textContent = edges.length
    ? `${edges.length} ${edges.length === 1 ? "dependence" : "dependences"}.${more}`
    : "The loop carries no dependence; clear the box to see those within an iteration.";
  byId("graph-drawing").hidden = byId("graph-rows").hidden = edges.length === 0;
  if (edges.length === 0) return;
  byId("graph-drawing").replaceChildren(drawing(edges, graphs.instructions));
  byId("graph-rows").querySelector(".scroll").replaceChildren(rowsOf(edges, graphs.instructions));
}

function startGraphs() {
  const view = byId("graph-view");
  if (!view) return;
  const graphs = JSON.parse(byId("graphs").textContent);
  document.querySelector(".needs-script").remove();
  view.hidden = false;
  const draw = () => drawGraph(graphs);
  byId("graph-loop").addEventListener("change", draw);
  byId("graph-carried").addEventListener("change", draw);
  for (const button of document.querySelectorAll(".show-graph")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      byId("graph-loop").value = button.dataset.loop;
      draw();
      byId("graph").scrollIntoView();
      byId("graph-loop").focus({ preventScroll: true });
    });
  }
  draw();
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
startFilter();
startGraphs();
window.addEventListener("hashchange", openTarget);
openTarget();
