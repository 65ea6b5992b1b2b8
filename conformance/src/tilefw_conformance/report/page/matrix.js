// The matrix as a table: a body for each group, its cases below it when it is open, and keys to walk in it.

const SHORT = { unsupported: "unsup.", "over-capacity": "capacity", overclaimed: "overcl.", gone: "gone" };
const OPEN_BELOW = 24; // so few cases are shown at once, without a click
const DRAWN_AT_ONCE = 60; // rows; those of later groups are drawn when they come near, so that a thousand cost no more
const ROW_HEIGHT = 28; // pixels of a case's row, about

function escaped(text) {
  return String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

// A line may end after an underscore, a slash or a comma: names are long and phones are narrow.
function breakable(text) {
  return escaped(text).replace(/[_/,.](?!$)/g, "$&<wbr>");
}

// An error over its bound, as short as a cell is narrow.
function short(ratio) {
  if (ratio === null || ratio === undefined) return "";
  if (Number.isNaN(ratio)) return "NaN";
  if (ratio === Infinity) return "∞";
  if (ratio === 0) return "0";
  if (ratio < 0.01) return "<.01";
  if (ratio < 0.995) return ratio.toFixed(2).slice(1);
  return ratio < 1000 ? String(Number(ratio.toPrecision(2))) : ratio.toExponential(0).replace("+", "");
}

function headOf(model, targets) {
  const cells = targets.map((target) => {
    const { name, executor } = model.targets[target];
    const words = { sim: "simulated", hw: "hardware" };
    return `<th scope="col"><span class="turn">${breakable(name.replaceAll("-", "-\u200b"))}<small>${words[executor] ?? ""}</small></span></th>`;
  });
  return `<thead><tr><th scope="col"><span class="unseen">case</span></th>${cells.join("")}</tr></thead>`;
}

// A group's row, and below it its cases when it is open; `later` leaves their room free, for a group that is out of sight.
function bodyOf(model, group, state, targets, open, later = false) {
  const cells = group.sums.map((sum, at) => groupCell(model, sum, group, model.targets[targets[at]].name, targets[at]));
  const key = escaped(group.key);
  const toggle = `<button type="button" class="toggle" data-group="${key}" aria-expanded="${open}" tabindex="-1">`
    + `<span class="name">${breakable(group.key)}</span> <small>${group.cases.length}</small></button>`;
  const room = `<tr class="later" aria-hidden="true"><td colspan="${targets.length + 1}" style="height:${ROW_HEIGHT * group.cases.length}px"></td></tr>`;
  const rows = open ? (later ? room : caseRows(model, group, state, targets)) : "";
  return `<tr class="group"><th scope="row">${toggle}</th>${cells.join("")}</tr>${rows}`;
}

function caseRows(model, group, state, targets) {
  return casesOf(group, state, targets).map((one) => rowOf(model, one, state, targets)).join("");
}

// The number of a pass: its error over its bound, unless that is the rounding of the output's own format.
function headroom({ ratio, worst, rounding }) {
  const number = ratio === undefined ? worst : rounding ? null : ratio;
  return number === null && rounding ? "½ulp" : short(number);
}

function headroomSaid(text) {
  return { "": "", "½ulp": ", rounding of the output alone" }[text] ?? `, ${text} of the bound`;
}

function groupCell(model, sum, group, target, index) {
  if (!sum.cases) return "<td></td>";
  const kind = sum.bad ? "bad" : sum.pass === sum.cases ? "all" : "part";
  const wrong = sum.bad - sum.unfinished;
  const problems = [wrong && `${wrong} ✕`, sum.unfinished && `${sum.unfinished} ◷`].filter(Boolean).join(" ");
  const count = sum.bad ? problems : kind === "all" ? `${sum.pass}` : `${sum.pass}/${sum.cases}`;
  const said = `${sum.pass} of ${sum.cases} pass${wrong ? `, ${wrong} wrong` : ""}${sum.unfinished ? `, ${sum.unfinished} timed out` : ""}${headroomSaid(headroom(sum))}`;
  return `<td><button type="button" class="c sum ${kind}${sum.worst > model.tight ? " tight" : ""}${mark(sum)}" style="--r:${gauge(sum.worst)}" tabindex="-1"`
    + ` data-group="${escaped(group.key)}" data-target="${index}" title="${said}" aria-label="${said}">`
    + `<span class="count">${count}</span><span class="ratio">${headroom(sum)}</span></button></td>`;
}

function rowOf(model, one, state, targets) {
  const [word, ...rest] = state.by === "group" ? one.variant.split("/") : [one.id];
  const name = `<b>${breakable(word)}</b>${rest.length ? ` ${breakable(rest.join("/"))}` : ""}`;
  const level = one.level === "core" ? "" : ` <small class="level">${one.level}</small>`;
  const cells = targets.map((target) => caseCell(model, one, one.results[target], target)).join("");
  return `<tr class="case" data-row="${one.index}"><th scope="row">${name}${level}</th>${cells}</tr>`;
}

function caseCell(model, one, result, target) {
  if (!result) return "<td></td>";
  const { outcome } = result;
  const passed = outcome === "pass";
  const number = passed ? headroom(result) : "";
  const text = passed ? number || "pass" : SHORT[outcome] ?? outcome;
  const was = result.was && result.change !== "U" ? `, was ${result.was}` : result.change === "A" ? ", new" : "";
  const said = `${outcome}${headroomSaid(number)}${was}`;
  return `<td><button type="button" class="c one o-${outcome}${isTight(model, result) ? " tight" : ""}${mark(result)}" tabindex="-1"`
    + ` style="--r:${passed && !result.rounding ? gauge(result.ratio) : 0}" data-case="${one.index}" data-target="${target}" aria-label="${said}">${text}</button></td>`;
}

function gauge(ratio) {
  return ratio === null || Number.isNaN(ratio) ? 0 : Math.min(1, Number(ratio.toPrecision(2)));
}

// A corner for what changed since the older report; a group has one only where it is worse or better.
function mark({ worse, better, change }) {
  if (worse) return " worse";
  if (better) return " better";
  return change && change !== "U" ? " changed" : "";
}

// Arrow keys move among the buttons of the table; only one of them is a stop of the Tab key.
function walk(table, event) {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -99], End: [0, 99] }[event.key];
  const here = event.target.closest("td, th");
  if (!step || !here || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const rows = [...table.querySelectorAll("tbody tr")];
  let row = rows.indexOf(here.parentElement);
  let column = Math.max(0, Math.min(here.parentElement.cells.length - 1, here.cellIndex + step[1]));
  const at = () => rows[row]?.cells[column]?.querySelector("button");
  do row += step[0]; while (step[0] && rows[row] && !at());
  while (!step[0] && !at() && column > 0 && column < here.parentElement.cells.length - 1) column += Math.sign(step[1]);
  stopAt(table, at());
  at()?.focus();
}

function stopAt(table, button) {
  if (!button) return;
  for (const other of table.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  button.tabIndex = 0;
}
