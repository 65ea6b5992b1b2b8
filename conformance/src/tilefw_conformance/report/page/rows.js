// Rows of the matrix: cases in groups, each group summed up for each target, in the order that was asked for.

const LEVELS = ["core", "extended", "stress", "preview", "distributed"];

// The names of the groups that a case is in; a case hunts several bugs and needs several capabilities.
const GROUPINGS = {
  group: (one) => [one.group],
  level: (one) => [one.level],
  bug: (one) => [...new Set(one.flags.map((flag) => flag.bug))],
  capability: (one) => [...new Set([...one.requires, ...one.results.flatMap((result) => result?.needs ?? [])])],
};

function groupsOf(cases, state, targets) {
  const groups = new Map();
  for (const one of cases) {
    for (const key of GROUPINGS[state.by](one)) {
      if (!groups.has(key)) groups.set(key, { key, cases: [] });
      groups.get(key).cases.push(one);
    }
  }
  const list = [...groups.values()].map((group) => ({ ...group, sums: targets.map((target) => sumOf(group.cases, target)) }));
  return ordered(list, state);
}

// What a group's cell says of one target. Errors that are the rounding of the output would hide all others.
function sumOf(cases, target) {
  const sum = { cases: 0, pass: 0, bad: 0, unfinished: 0, worst: null, rounding: false, worse: 0, better: 0 };
  for (const one of cases) {
    const result = one.results[target];
    if (!result || result.outcome === "gone") continue;
    sum.cases += 1;
    sum.bad += result.good ? 0 : 1;
    sum.unfinished += result.unfinished ? 1 : 0;
    sum.worse += result.worse ? 1 : 0;
    sum.better += result.better ? 1 : 0;
    if (result.outcome !== "pass") continue;
    sum.pass += 1;
    sum.rounding ||= result.rounding;
    if (result.ratio !== null && !result.rounding) sum.worst = Math.max(sum.worst ?? 0, result.ratio);
  }
  return sum;
}

function ordered(groups, state) {
  const bad = (group) => group.sums.reduce((total, sum) => total + sum.bad, 0);
  const tight = (group) => Math.max(...group.sums.map((sum) => sum.worst ?? -1));
  const place = (group) => (state.by === "level" ? LEVELS.indexOf(group.key) : 0);
  const byName = (a, b) => place(a) - place(b) || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
  const orders = { name: byName, problems: (a, b) => bad(b) - bad(a) || byName(a, b), tight: (a, b) => tight(b) - tight(a) || byName(a, b) };
  return groups.sort(orders[state.sort]);
}

// The cases of an open group: as in their file, or by what they show on the visible targets.
function casesOf(group, state, targets) {
  if (state.sort === "name") return group.cases;
  const results = (one) => targets.map((target) => one.results[target]).filter(Boolean);
  const bad = (one) => results(one).filter((result) => !result.good).length;
  const tight = (one) => Math.max(-1, ...results(one).filter((result) => result.outcome === "pass" && !result.rounding).map((result) => result.ratio ?? -1));
  const score = state.sort === "problems" ? bad : tight;
  return [...group.cases].sort((a, b) => score(b) - score(a) || a.index - b.index);
}
