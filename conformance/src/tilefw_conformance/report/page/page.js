// The page's state, in the address as well so that a view can be sent to somebody, and what the user does with it.

const $ = (id) => document.getElementById(id);
const table = $("matrix");
const panel = $("panel");
const state = { query: "", by: "group", sort: "name", levels: new Set(), chips: new Set(), hidden: new Set(), open: new Map(), all: false };
let model;
let chips;
let groups = [];
let targets = [];
let selected = null; // {one, target}: the case whose result the panel shows

function readAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  const names = (key) => (said.get(key) ?? "").split(",").filter(Boolean);
  state.query = said.get("q") ?? "";
  state.by = said.get("by") in GROUPINGS ? said.get("by") : "group";
  state.sort = ["problems", "tight"].includes(said.get("sort")) ? said.get("sort") : "name";
  state.levels = new Set(names("level"));
  state.chips = new Set(names("show"));
  state.hidden = new Set(names("hide").map((name) => model.targets.findIndex((target) => target.name === name)));
  const target = model.targets.findIndex(({ name }) => name === said.get("target"));
  const one = model.byId.get(said.get("case"));
  selected = one && target >= 0 ? { one, target } : null;
}

function writeAddress() {
  const said = new URLSearchParams();
  if (state.query) said.set("q", state.query);
  if (state.by !== "group") said.set("by", state.by);
  if (state.sort !== "name") said.set("sort", state.sort);
  if (state.levels.size) said.set("level", [...state.levels].join());
  if (state.chips.size) said.set("show", [...state.chips].join());
  if (state.hidden.size) said.set("hide", [...state.hidden].map((index) => model.targets[index].name).join());
  if (selected) said.set("case", selected.one.id), said.set("target", model.targets[selected.target].name);
  history.replaceState(null, "", `#${said}`);
}

function render() {
  targets = model.targets.map((_, index) => index).filter((index) => !state.hidden.has(index));
  const candidate = candidates(model, state);
  const cases = chosen(candidate, chips, state, targets);
  groups = groupsOf(cases, state, targets);
  table.style.setProperty("--columns", targets.length);
  table.classList.toggle("few", targets.length <= 3);
  table.innerHTML = headOf(model, targets) + bodies(cases.length).join("");
  near.disconnect();
  for (const row of table.querySelectorAll(".later")) near.observe(row);
  stopAt(table, table.querySelector("tbody button"));
  renderChips(candidate);
  $("status").textContent = statusOf(cases.length);
  markSelected();
  writeAddress();
}

function bodies(shown) {
  let drawn = 0;
  return groups.map((group, at) => {
    const open = isOpen(group, shown);
    const later = drawn > DRAWN_AT_ONCE;
    if (open) drawn += group.cases.length;
    return `<tbody data-at="${at}">${bodyOf(model, group, state, targets, open, later)}</tbody>`;
  });
}

const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) draw(target);
}, { rootMargin: "1000px 0px" });

function draw(room) {
  near.unobserve(room);
  room.outerHTML = caseRows(model, groups[Number(room.closest("tbody").dataset.at)], state, targets);
  markSelected();
}

function isOpen(group, shown) {
  return state.open.get(group.key) ?? (state.all || shown <= OPEN_BELOW);
}

function statusOf(shown) {
  const every = model.cases.length;
  const deleted = new Set((model.against?.deleted ?? []).filter(([, id]) => !model.byId.has(id)).map(([, id]) => id)).size;
  const gone = deleted ? ` ${deleted} cases of the older report are gone.` : "";
  if (!shown) return "No case fits.";
  return `${shown === every ? `${every} cases` : `${shown} of ${every} cases`} in ${groups.length} ${groups.length === 1 ? "group" : "groups"}.${gone}`;
}

function renderChips(candidate) {
  const count = (chip) => candidate.filter((one) => targets.some((target) => one.results[target] && chip.test(one.results[target]))).length;
  const levels = LEVELS.filter((level) => model.cases.some((one) => one.level === level));
  const button = (kind, key, name, number, pressed, style) => `<button type="button" class="chip ${style}${number === 0 ? " none" : ""}" data-${kind}="${escaped(key)}" aria-pressed="${pressed}">`
    + `${escaped(name)}${number === null ? "" : ` <small>${number.toLocaleString("en")}</small>`}</button>`;
  const parts = [
    ["Outcomes", chips.filter((chip) => chip.kind === "outcome").map((chip) => button("chip", chip.key, chip.name, count(chip), state.chips.has(chip.key), `o-${chip.key}`))],
    ["Changes since the older report", chips.filter((chip) => chip.kind === "change").map((chip) => button("chip", chip.key, chip.name, count(chip), state.chips.has(chip.key), `d-${chip.key}`))],
    ["Levels", levels.length > 1 ? levels.map((level) => button("level", level, level, null, state.levels.has(level), "")) : []],
  ];
  const focused = document.activeElement?.closest?.("#chips .chip");
  const again = focused && { ...focused.dataset };
  $("chips").innerHTML = parts.filter(([, buttons]) => buttons.length)
    .map(([name, buttons]) => `<div role="group" aria-label="${name}">${buttons.join("")}</div>`).join("");
  if (again) $("chips").querySelector(Object.entries(again).map(([key, value]) => `[data-${key}="${CSS.escape(value)}"]`).join(""))?.focus();
}

function show(one, target, focus = true) {
  selected = { one, target };
  panel.innerHTML = panelOf(model, one, target);
  reveal(focus);
}

function showGroup(group, target) {
  selected = null;
  panel.innerHTML = groupPanelOf(model, group, target);
  reveal(true);
}

function reveal(focus) {
  panel.hidden = false;
  panel.scrollTop = 0;
  document.body.classList.add("beside");
  if (focus) panel.focus({ preventScroll: true });
  markSelected();
  writeAddress();
}

function close() {
  const back = selected && table.querySelector(cellOf(selected));
  panel.hidden = true;
  selected = null;
  document.body.classList.remove("beside");
  markSelected();
  writeAddress();
  (back ?? table.querySelector('[tabindex="0"]'))?.focus({ preventScroll: !back });
}

function cellOf({ one, target }) {
  return `button[data-case="${one.index}"][data-target="${target}"]`;
}

function markSelected() {
  for (const row of table.querySelectorAll("[aria-selected]")) row.removeAttribute("aria-selected");
  const cell = selected && table.querySelector(cellOf(selected));
  if (!cell) return;
  cell.closest("tr").setAttribute("aria-selected", "true");
  cell.closest("td").setAttribute("aria-selected", "true");
  stopAt(table, cell);
}

// The next case in the order of the rows that are there, also in groups that are closed.
function step(by) {
  if (!selected) return;
  const line = groups.flatMap((group) => casesOf(group, state, targets));
  const next = line[line.indexOf(selected.one) + by];
  if (next) show(next, selected.target);
}

function turn(by) {
  const at = targets.indexOf(selected?.target);
  const next = targets[at + by];
  if (selected && at >= 0 && next !== undefined) show(selected.one, next);
}

function toggle(button) {
  const body = button.closest("tbody");
  const group = groups[Number(body.dataset.at)];
  const open = button.getAttribute("aria-expanded") !== "true";
  state.open.set(group.key, open);
  body.innerHTML = bodyOf(model, group, state, targets, open);
  const again = body.querySelector(".toggle");
  stopAt(table, again);
  again.focus({ preventScroll: true });
  markSelected();
}

function flip(set, key) {
  if (!set.delete(key)) set.add(key);
}

function wireTools() {
  $("tools").addEventListener("submit", (event) => event.preventDefault());
  $("query").addEventListener("input", () => { state.query = $("query").value; render(); });
  for (const name of ["by", "sort"]) $(name).addEventListener("change", () => { state[name] = $(name).value; state.open.clear(); render(); });
  $("expand").addEventListener("click", () => {
    state.all = !state.all;
    state.open.clear();
    $("expand").textContent = state.all ? "collapse all" : "expand all";
    $("expand").setAttribute("aria-pressed", state.all);
    render();
  });
  $("chips").addEventListener("click", ({ target }) => {
    const { chip, level } = target.closest("button")?.dataset ?? {};
    if (chip) flip(state.chips, chip);
    if (level) flip(state.levels, level);
    if (chip || level) render();
  });
}

// The rows of the summary choose the columns of the matrix.
function wireSummary() {
  for (const row of document.querySelectorAll(".targets tbody tr")) {
    const index = Number(row.dataset.target);
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: !state.hidden.has(index) });
    box.setAttribute("aria-label", `Show the column of ${model.targets[index].name}`);
    box.addEventListener("change", () => { flip(state.hidden, index); row.classList.toggle("off", !box.checked); render(); });
    row.classList.toggle("off", !box.checked);
    row.cells[0].prepend(box);
  }
}

function wireTable() {
  table.addEventListener("keydown", (event) => walk(table, event));
  table.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (!button) return;
    stopAt(table, button);
    if (button.dataset.case) show(model.cases[button.dataset.case], Number(button.dataset.target));
    else if (button.dataset.target) showGroup(groups[Number(button.closest("tbody").dataset.at)], Number(button.dataset.target));
    else toggle(button);
  });
}

function wirePanel() {
  panel.addEventListener("click", async ({ target }) => {
    const button = target.closest("button");
    if (!button) return;
    const { tab, step: by, close: shut, copy, case: index } = button.dataset;
    if (tab !== undefined) show(selected.one, Number(tab));
    else if (by) step(Number(by));
    else if (shut !== undefined) close();
    else if (index) show(model.cases[index], Number(button.dataset.target));
    else if (copy !== undefined) await copied(button, panel.querySelector(".command"));
  });
}

// Pages that are opened as files may not use the clipboard everywhere: then the command is selected instead.
async function copied(button, command) {
  try {
    await navigator.clipboard.writeText(command.textContent);
    button.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(command);
    button.textContent = "selected";
  }
}

function wireKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") return leave();
    if (event.target.closest("input:not([type=checkbox]), select, textarea")) return;
    const act = { "/": () => $("query").select(), j: () => step(1), k: () => step(-1), h: () => turn(-1), l: () => turn(1) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function leave() {
  if (!panel.hidden) return close();
  if (state.query) $("query").value = state.query = "", render();
}

function renderRuns() {
  const rows = model.reports.map((run, index) => {
    const names = model.targets.filter((target) => target.report === index).map((target) => target.name).join(", ");
    const versions = Object.entries(run.versions).map(([name, version]) => `${name} ${version ?? "not installed"}`).join(", ");
    const options = Object.entries(run.options).map(([name, value]) => `${name} ${[value].flat().join(" ")}`).join(", ");
    const facts = [
      ["started", run.started], ["took", `${run.seconds.toLocaleString("en")} s`], ["command", `<code>${escaped(run.command)}</code>`],
      ["seed", run.seed ?? "each case's own"], ["options", escaped(options) || "none"], ["versions", escaped(versions)], ["digest", `<code>${run.digest}</code>`],
    ];
    return `<h3>${escaped(names)}</h3>${rowsOf(facts)}`;
  });
  const conditions = (model.against?.conditions ?? []).map((text) => `<li>${escaped(text)}</li>`).join("");
  const against = model.against ? `<h3>Compared with the run${model.against.started.length > 1 ? "s" : ""} of ${escaped(model.against.started.join(", "))}</h3>`
    + (conditions ? `<p>Other conditions, beside the code:</p><ul>${conditions}</ul>` : "") : "";
  $("runs").innerHTML = `<details><summary>About ${model.reports.length > 1 ? "these runs" : "this run"}</summary>${rows.join("")}${against}</details>`;
}

async function start() {
  model = modelOf(await inflate($("data").textContent));
  chips = chipsOf(model);
  readAddress();
  if (selected) for (const key of GROUPINGS[state.by](selected.one).slice(0, 1)) state.open.set(key, true);
  for (const name of ["query", "by", "sort"]) $(name).value = state[name];
  wireSummary();
  wireTools();
  wireTable();
  wirePanel();
  wireKeys();
  render();
  renderRuns();
  for (const element of [table, $("tools"), $("legend")]) element.hidden = false;
  $("notice").remove();
  if (selected) show(selected.one, selected.target, false);
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => { $("notice").textContent = `The data of this page cannot be read: ${error.message}`; });
