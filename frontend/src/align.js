// Two programs beside each other. A jaxpr and what a rewrite made of it are matched by row, through `parent`, so that new names of
// variables make no noise; texts of XLA by their lines, with the names of instructions left out.

import { diffArrays } from "diff";

const PATIENCE = { timeout: 1500 };

/**
 * Pairs [{left, right, kind}] in the order of the right side; `left` and `right` are rows or null, `kind` is "same", "changed", "added",
 * "removed" or "moved". `parentOf(row)` is the row of the left side that a row of the right side comes from, or null.
 */
export function alignRows(left, right, parentOf, alike) {
  const position = new Map(left.map((row, i) => [row, i]));
  const first = new Map();
  right.forEach((row, j) => {
    const i = position.get(parentOf(row));
    if (
      i !== undefined &&
      (!first.has(i) || (!alike(left[first.get(i)[0]], right[first.get(i)[1]]) && alike(left[i], row)))
    )
      first.set(i, [i, j]);
  });
  const pairs = [...first.values()].sort((a, b) => a[1] - b[1]);
  const inOrder = new Set(increasing(pairs.map(([i]) => i)).map((at) => pairs[at][1]));
  return merge(left, right, new Map(pairs.map(([i, j]) => [j, i])), inOrder, alike);
}

function merge(left, right, partner, inOrder, alike) {
  const out = [],
    taken = new Set(partner.values());
  let at = 0;
  const removedUpTo = (end) => {
    for (; at < end; at++) if (!taken.has(at)) out.push({ left: left[at], right: null, kind: "removed" });
  };
  right.forEach((row, j) => {
    const i = partner.get(j);
    if (i === undefined) return out.push({ left: null, right: row, kind: "added" });
    if (!inOrder.has(j))
      return out.push({ left: left[i], right: row, kind: alike(left[i], row) ? "moved" : "changed" });
    removedUpTo(i);
    at = i + 1;
    out.push({ left: left[i], right: row, kind: alike(left[i], row) ? "same" : "changed" });
  });
  removedUpTo(left.length);
  return out;
}

/** Indexes of a longest increasing subsequence of distinct numbers. */
export function increasing(numbers) {
  const ends = [],
    before = [];
  numbers.forEach((x, i) => {
    let low = 0,
      high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[ends[middle]] < x) low = middle + 1;
      else high = middle;
    }
    before[i] = low ? ends[low - 1] : -1;
    ends[low] = i;
  });
  const out = [];
  for (let i = ends.at(-1) ?? -1; i >= 0; i = before[i]) out.push(i);
  return out.reverse();
}

/** Pairs of lines of two texts, as `alignRows` gives them; lines with equal `rows` beside each other are "changed". */
export function alignLines(left, right, leftRows = [], rightRows = []) {
  const a = left.map(nameless),
    b = right.map(nameless);
  const parts = diffArrays(a, b, PATIENCE) ?? [
    { removed: true, count: a.length },
    { added: true, count: b.length },
  ];
  const out = [];
  let i = 0,
    j = 0,
    gone = [];
  for (const part of [...parts, {}]) {
    if (part.removed) {
      for (let k = 0; k < part.count; k++) gone.push(i++);
      continue;
    }
    const come = part.added ? Array.from({ length: part.count }, () => j++) : [];
    out.push(...hunk(gone, come, leftRows, rightRows));
    gone = [];
    if (!part.added) for (let k = 0; k < (part.count ?? 0); k++) out.push({ left: i++, right: j++, kind: "same" });
  }
  return moved(out, a, b);
}

function hunk(gone, come, leftRows, rightRows) {
  const key = (rows) => (rows?.length ? rows.join() : null);
  const waiting = new Map();
  for (const i of gone) if (key(leftRows[i])) waiting.set(key(leftRows[i]), i);
  const pairs = new Map();
  for (const j of come) {
    const i = waiting.get(key(rightRows[j]));
    if (i !== undefined) {
      pairs.set(j, i);
      waiting.delete(key(rightRows[j]));
    }
  }
  const paired = new Set(pairs.values());
  return [
    ...gone.filter((i) => !paired.has(i)).map((i) => ({ left: i, right: null, kind: "removed" })),
    ...come.map((j) =>
      pairs.has(j) ? { left: pairs.get(j), right: j, kind: "changed" } : { left: null, right: j, kind: "added" },
    ),
  ];
}

function moved(pairs, a, b) {
  const gone = new Map();
  for (const pair of pairs) if (pair.kind === "removed" && a[pair.left].trim().length > 2) gone.set(a[pair.left], pair);
  for (const pair of pairs) {
    const from = pair.kind === "added" && gone.get(b[pair.right]);
    if (!from) continue;
    Object.assign(pair, { left: from.left, kind: "moved" });
    from.kind = "gone";
    gone.delete(b[pair.right]);
  }
  return pairs.filter((pair) => pair.kind !== "gone");
}

/** Lines of two languages: beside the lines of an equation stand those that it became; a line without rows follows the one before it. */
export function alignTranslated(leftRows, rightRows) {
  const came = owners(leftRows),
    became = new Map(),
    out = [];
  owners(rightRows).forEach((row, j) => became.set(row, [...(became.get(row) ?? []), j]));
  for (let i = 0; i < came.length;) {
    const row = came[i],
      start = i;
    while (i < came.length && came[i] === row) i++;
    const right = became.get(row) ?? [];
    became.delete(row);
    for (let k = 0; k < Math.max(i - start, right.length); k++)
      out.push({ left: start + k < i ? start + k : null, right: right[k] ?? null, kind: "became" });
  }
  for (const rest of became.values()) out.push(...rest.map((right) => ({ left: null, right, kind: "became" })));
  return out;
}

function owners(rows) {
  let last;
  return rows.map((its) => (last = its[0] ?? last));
}

/** A line of HLO or StableHLO without the numbers of its names, and without metadata. */
export const nameless = (line) =>
  line
    .replace(/, metadata=\{.*$/, "")
    .replace(/([%#][A-Za-z_][\w-]*?)(\.\d+)+\b/g, "$1")
    .replace(/%\d+/g, "%");

/** The text of an equation without the names of its variables: "_:f32[4] = mul _ _". */
export const variableless = (text) =>
  text.replace(/(^|[\s(])([a-z]{1,4}|_)(?=:|\s|$|\))/g, (all, before, name, at, whole) =>
    isOperation(whole, at + before.length) ? all : `${before}_`,
  );

const isOperation = (whole, at) => /=\s$/.test(whole.slice(Math.max(0, at - 2), at));
