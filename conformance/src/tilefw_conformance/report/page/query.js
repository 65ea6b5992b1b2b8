// Which cases are shown: the language of -k over ids, and the chips of outcomes, levels and changes.

// `matmul and not fp16 or cast/*`: `or` of `and` of words or globs; words side by side are `and`.
function queryOf(text) {
  const choices = [[]];
  let wanted = true;
  for (const word of text.trim().split(/\s+/).filter(Boolean)) {
    if (word === "or") choices.push([]);
    else if (word === "not") wanted = false;
    else if (word !== "and") {
      choices.at(-1).push({ wanted, fits: fitting(word) });
      wanted = true;
    }
  }
  const meant = choices.filter((terms) => terms.length);
  return (id) => !meant.length || meant.some((terms) => terms.every((term) => term.fits(id) === term.wanted));
}

function fitting(word) {
  if (!/[*?]/.test(word)) return (id) => id.includes(word);
  const source = word.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
  const whole = new RegExp(`^${source}$`);
  return (id) => whole.test(id);
}

// The kinds of chips, each with what it asks of a result. A chosen kind shows the cases that it fits on some visible target.
function chipsOf(model) {
  const shown = (test) => model.cases.some((one) => one.results.some((result) => result && test(result)));
  const outcomes = model.outcomes.map((name) => ({ kind: "outcome", key: name, name, test: (result) => result.outcome === name }));
  const tight = { kind: "outcome", key: "tight", name: `above ${model.tight}`, test: (result) => isTight(model, result) };
  const changes = [
    ["worse", (result) => result.worse], ["better", (result) => result.better], ["C", (result) => result.change === "C", "changed"],
    ["A", (result) => result.change === "A", "added"], ["D", (result) => result.change === "D", "deleted"],
  ].map(([key, test, name = key]) => ({ kind: "change", key, name, test }));
  return [...outcomes, tight, ...changes].filter((chip) => shown(chip.test));
}

// Near its bound for another reason than rounding the output.
function isTight(model, { outcome, ratio, rounding }) {
  return outcome === "pass" && !rounding && ratio > model.tight;
}

// The cases that the state lets through, apart from chips, which count what they would show.
function candidates(model, state) {
  const fits = queryOf(state.query);
  return model.cases.filter((one) => fits(one.id) && (!state.levels.size || state.levels.has(one.level)));
}

function chosen(cases, chips, state, targets) {
  let left = cases;
  for (const kind of ["outcome", "change"]) {
    const tests = chips.filter((chip) => chip.kind === kind && state.chips.has(chip.key)).map((chip) => chip.test);
    if (tests.length) {
      left = left.filter((one) => targets.some((target) => one.results[target] && tests.some((test) => test(one.results[target]))));
    }
  }
  return left;
}
