// The report's data: inflated once, its columns turned into cases that hold a result for each target.

async function inflate(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

// Base 85 in Python's alphabet, with a comma for "<": five characters are four bytes, fewer at the end are one byte less.
function bytesOf(text) {
  const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
  const digit = new Uint8Array(128);
  for (let value = 0; value < 85; value += 1) digit[alphabet.charCodeAt(value)] = value;
  const bytes = new Uint8Array(Math.ceil(text.length / 5) * 4);
  for (let at = 0, to = 0; at < text.length; at += 5, to += 4) {
    let word = 0;
    for (let next = at; next < at + 5; next += 1) word = word * 85 + (next < text.length ? digit[text.charCodeAt(next)] : 84);
    for (let byte = 3; byte >= 0; byte -= 1, word = Math.floor(word / 256)) bytes[to + byte] = word % 256;
  }
  return bytes.subarray(0, Math.floor((text.length * 4) / 5));
}

function modelOf(data) {
  const sets = { good: new Set(data.good), unfinished: new Set(data.unfinished) };
  const cases = data.cases.map((row, index) => caseOf(data, row, index, sets));
  for (const [target, id, outcome] of data.against?.deleted ?? []) {
    const known = cases.find((one) => one.id === id);
    if (known) known.results[target] ??= gone(outcome);
  }
  return { ...data, ...sets, cases, byId: new Map(cases.map((one) => [one.id, one])) };
}

function caseOf(data, [id, group, level, kernel, parameters, seed, notes, requires], index, sets) {
  const flags = notes.map((note) => {
    const [flag, bug, description, effect] = data.notes[note];
    return { flag, bug, description, effect };
  });
  const results = data.results.map((columns, target) => resultOf(data, columns, index, target, sets));
  const variant = id.startsWith(`${group}/`) ? id.slice(group.length + 1) : id;
  return { index, id, variant, group, level, kernel, parameters, seed, flags, requires: data.sets[requires], results };
}

function resultOf(data, columns, index, target, { good, unfinished }) {
  if (columns.outcome[index] === null) return null;
  const outcome = data.outcomes[columns.outcome[index]];
  const text = (name) => data.texts[columns[name][index]];
  const ratio = numberOf(columns.ratio[index]);
  const times = columns.times[index];
  const [worst, resources] = [columns.worst, columns.resources].map((spread) => spread.map((column) => column[index]));
  const result = {
    outcome, good: good.has(outcome), unfinished: unfinished.has(outcome), ratio, rounding: columns.rounding[index] === 1, worst: worst[0] === null ? null : worstOf(data, worst, ratio),
    stages: data.paths[columns.path[index]].map(([name, verdict, note], at) => ({ name, verdict, note, ms: timeOf(times.charCodeAt(at)) })),
    needs: data.sets[columns.needs[index]], missing: data.sets[columns.missing[index]], resources: resourcesOf(data, resources),
    reason: text("reason"), code: text("code"), error: text("error"), artifact: text("artifact"), attempts: columns.attempts[index],
    command: text("command").replaceAll("\u0001", data.targets[target].name),
  };
  return { ...result, ...changeOf(data, result, index, target) };
}

// Of a pass only the side of the expected value is packed on which it lies: the error is the ratio times the bound.
function worstOf(data, [output, index, expected, bound, side], ratio) {
  const value = Array.isArray(side) ? side[0] : side ? rounded(expected + side * ratio * bound, bound) : expected;
  const about = side === 1 || side === -1;
  return { output: data.texts[output], index, expected, value, about, bound: numberOf(bound) };
}

// To a thousandth of the bound: what is packed does not say more.
function rounded(value, bound) {
  const decimals = 3 - Math.floor(Math.log10(bound));
  return decimals >= 0 && decimals <= 100 ? Number(value.toFixed(decimals)) : value;
}

function resourcesOf(data, [names, ...numbers]) {
  return data.names[names].map((name, at) => [name, numbers[at]]);
}

// Milliseconds of a stage: twenty steps a decade from a microsecond.
function timeOf(code) {
  return 10 ** ((code - 40) / 20) / 1000;
}

// How a result differs from the older report's: A added, C changed, U unchanged; nothing where there is no older report.
function changeOf(data, result, index, target) {
  const old = data.against?.old[target];
  if (!old) return {};
  if (old.outcome[index] === null) return { change: "A", worse: !result.good };
  const was = data.outcomes[old.outcome[index]];
  const wasGood = data.good.includes(was);
  const change = was === result.outcome ? "U" : "C";
  const better = change === "C" && ((result.good && !wasGood) || result.outcome === "pass");
  return { change, was, wasRatio: numberOf(old.ratio[index]), worse: wasGood && !result.good, better };
}

function gone(outcome) {
  return { outcome: "gone", good: true, ratio: null, change: "D", was: outcome, stages: [], needs: [], missing: [], resources: [] };
}

// Infinities and NaN are words in JSON.
function numberOf(value) {
  return typeof value === "string" ? Number(value.replace("inf", "Infinity")) : value;
}
