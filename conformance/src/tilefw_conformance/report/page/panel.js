// The panel beside the matrix: all that a report knows of one case on one target.

function panelOf(model, one, target) {
  const result = one.results[target];
  const parts = [panelHead(model, one, target)];
  if (!result) parts.push('<p class="quiet">This case did not run on this target.</p>');
  else parts.push(verdictOf(result), comparisonOf(model, result), huntedOf(one), stagesOf(result), commandOf(result), errorOf(result));
  parts.push(caseFacts(one, result));
  if (result?.artifact) parts.push(`<section><h3>Machine code</h3><pre class="code" tabindex="0">${escaped(result.artifact)}</pre></section>`);
  return parts.join("");
}

function panelHead(model, one, target) {
  const tabs = model.targets.map(({ name }, index) => {
    const result = one.results[index];
    const outcome = result?.outcome ?? "absent";
    return `<button type="button" data-tab="${index}" aria-pressed="${index === target}" class="tab o-${outcome}">`
      + `<i></i>${escaped(name)}<span class="unseen">: ${outcome}</span></button>`;
  });
  return '<div class="steps"><button type="button" class="plain" data-step="-1" aria-label="Previous case" title="k">↑</button>'
    + '<button type="button" class="plain" data-step="1" aria-label="Next case" title="j">↓</button>'
    + '<button type="button" class="plain close" data-close aria-label="Close" title="Esc">✕</button></div>'
    + `<h2>${breakable(one.id)}</h2><div class="tabs" role="group" aria-label="Targets">${tabs.join("")}</div>`;
}

function verdictOf(result) {
  const was = result.was && result.change === "C" ? `<span class="was">was ${escaped(result.was)}</span>` : "";
  const added = result.change === "A" ? '<span class="was">new</span>' : "";
  const attempts = result.attempts > 1 ? ` <span class="quiet">after ${result.attempts} attempts</span>` : "";
  return `<p class="verdict"><b class="o o-${result.outcome}">${result.outcome}</b>${was}${added}${attempts} ${reasonOf(result)}</p>`;
}

function reasonOf(result) {
  if (result.missing.length) return `needs ${result.missing.map((name) => `<code>${escaped(name)}</code>`).join(", ")}, which the target does not claim`;
  if (result.reason) return linked(result.reason);
  if (result.error) return escaped(firstLine(result));
  return result.outcome === "gone" ? `not in this report; it was ${escaped(result.was)}` : "";
}

function firstLine({ error, code }) {
  return error.split("\n")[0].replace(`error[${code}]: `, "");
}

function linked(text) {
  return escaped(text).replace(/https?:\/\/[^\s&;]+/g, (address) => `<a href="${address}" rel="noreferrer">${address}</a>`);
}

// The error of the worst element on a scale whose end is the bound.
function comparisonOf(model, result) {
  if (result.ratio === null || result.ratio === undefined) return "";
  const beyond = !(result.ratio <= 1);
  const scale = `<div class="scale${beyond ? " beyond" : ""}${isTight(model, result) ? " tight" : ""}" style="--r:${beyond ? 1 : gauge(result.ratio)}"><i></i></div>`;
  const worst = result.worst ? rowsOf([
    ["worst element", `<code>${escaped(result.worst.output)}[${result.worst.index.join(", ")}]</code>`],
    ["found", (result.worst.about ? "≈ " : "") + digits(result.worst.value)],
    ["expected", digits(result.worst.expected) + (result.worst.bound ? ` ± ${escaped(result.worst.bound)}` : " exactly")],
  ]) : "";
  const told = result.ratio === 0 ? "none" : `${figure(result.ratio)} <small>${beyond ? "times" : "of"} its bound</small>`;
  const before = result.wasRatio ?? null;
  const was = before === null || before === result.ratio ? "" : ` <small>was ${figure(before)}</small>`;
  const rounding = result.rounding ? '<p class="quiet">The bound is the rounding of the output\'s own format: no result comes nearer.</p>' : "";
  return `<section><h3>Largest error</h3><p class="figure">${told}${was}</p>${scale}${rounding}${worst}</section>`;
}

function figure(ratio) {
  return Number.isFinite(ratio) ? Number(ratio.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 }) : short(ratio);
}

function digits(value) {
  return `<code>${escaped(value)}</code>`;
}

function huntedOf(one) {
  const bugs = one.flags.map(({ flag, bug, description, effect }) => `<dt><code>${escaped(bug)}</code> <small>${escaped(flag)}</small></dt>`
    + `<dd>${escaped(description)}<br><span class="quiet">With the bug: ${escaped(effect)}</span></dd>`);
  return bugs.length ? `<section><h3>The bug it hunts</h3><dl class="bugs">${bugs.join("")}</dl></section>` : "";
}

function stagesOf(result) {
  if (!result.stages.length) return "";
  const longest = Math.max(...result.stages.map((stage) => stage.ms), 1e-9);
  const total = result.stages.reduce((sum, stage) => sum + stage.ms, 0);
  const rows = result.stages.map(({ name, verdict, note, ms }) => {
    const said = verdict === "pass" ? "" : verdict;
    return `<tr class="s-${escaped(verdict)}"><th scope="row">${escaped(name)}</th><td class="n">${verdict === "skipped" ? "" : time(ms)}</td>`
      + `<td><i style="width:${((100 * ms) / longest).toFixed(1)}%"></i><span>${escaped([said, note].filter(Boolean).join(", "))}</span></td></tr>`;
  });
  return `<section><h3>Stages <small>${time(total)}</small></h3><table class="stages"><tbody>${rows.join("")}</tbody></table></section>`;
}

function time(ms) {
  return ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : ms >= 10 ? `${Math.round(ms)} ms` : `${Number(ms.toPrecision(2))} ms`;
}

function commandOf(result) {
  if (!result.command) return "";
  return '<section><h3>Run it again <button type="button" class="plain copy" data-copy>copy</button></h3>'
    + `<pre class="command" tabindex="0">${words(result.command)}</pre></section>`;
}

// A line ends between words, not after the hyphens of an option.
function words(command) {
  return command.split(" ").map((word) => `<span>${escaped(word)}</span>`).join(" ");
}

function errorOf(result) {
  return result.error ? `<section><h3>What was said</h3><pre class="code${result.error.trim().includes("\n") ? "" : " line"}" tabindex="0">${escaped(result.error)}</pre></section>` : "";
}

function caseFacts(one, result) {
  const parameters = Object.entries(one.parameters).map(([name, value]) => `<code>${escaped(name)}=${escaped(value)}</code>`).join(" ");
  const names = (list) => list.map((name) => `<code>${breakable(name)}</code>`).join(" ");
  const resources = (result?.resources ?? []).map(([name, value]) => `${escaped(name)} ${escaped(value.toLocaleString("en"))}`);
  const rows = [
    ["kernel", escaped(one.kernel)], ["level", one.level], ["seed", one.seed], ["parameters", parameters], ["asks for", names(one.requires)],
    ["uses", names(result?.needs ?? [])], ["takes", resources.join("<br>")],
  ];
  return `<section><h3>The case</h3>${rowsOf(rows.filter(([, value]) => value !== ""))}</section>`;
}

function rowsOf(pairs) {
  return `<dl class="rows">${pairs.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join("")}</dl>`;
}

// What a group's cell opens: its cases on that target, the worst first.
function groupPanelOf(model, group, target) {
  const cases = group.cases.filter((one) => one.results[target]);
  const rank = ({ good, outcome, ratio, rounding }) => (!good ? 1e9 : outcome !== "pass" ? 1e6 : rounding ? 0 : ratio ?? 0);
  cases.sort((a, b) => rank(b.results[target]) - rank(a.results[target]) || a.index - b.index);
  const items = cases.map((one) => {
    const result = one.results[target];
    const told = result.outcome === "pass" ? headroom(result) : SHORT[result.outcome] ?? result.outcome;
    return `<li><button type="button" class="plain item" data-case="${one.index}" data-target="${target}"><b class="o o-${result.outcome}">${told || "pass"}</b>`
      + `<span>${breakable(one.id)}</span></button></li>`;
  });
  return '<div class="steps"><button type="button" class="plain close" data-close aria-label="Close" title="Esc">✕</button></div>'
    + `<h2>${breakable(group.key)}</h2><p class="quiet">on ${escaped(model.targets[target].name)}, ${cases.length} cases, the worst first</p>`
    + `<ol class="list">${items.join("")}</ol>`;
}
