// A source line and its instructions are joined: pointing at one marks all, a click or Enter keeps the mark and brings the rest into sight.

const rows = new Map();
for (const row of document.querySelectorAll("[data-l]")) {
  const name = row.dataset.l;
  rows.set(name, [...(rows.get(name) ?? []), row]);
}
let marked = null;
let kept = null;

function mark(name) {
  if (name === marked) return;
  for (const row of rows.get(marked) ?? []) row.classList.remove("on");
  for (const row of rows.get(name) ?? []) row.classList.add("on");
  marked = name;
}

// Only the other list moves, within its own frame: the page under the reader's hand stays where it is.
function keep(row) {
  kept = kept === row.dataset.l ? null : row.dataset.l;
  mark(row.dataset.l);
  if (kept === null) return;
  const other = rows.get(kept).find((one) => one.closest("table") !== row.closest("table"));
  const frame = other?.closest(".scroll");
  if (frame) frame.scrollTop += other.getBoundingClientRect().top - frame.getBoundingClientRect().top - frame.clientHeight / 3;
}

const rowOf = (event) => event.target.closest?.("[data-l]");
document.addEventListener("mouseover", (event) => mark(rowOf(event)?.dataset.l ?? kept));
document.addEventListener("click", (event) => rowOf(event) && keep(rowOf(event)));
document.addEventListener("keydown", (event) => event.key === "Enter" && rowOf(event) && keep(rowOf(event)));
document.documentElement.dataset.ready = "true";
