// Equations of two reports matched: by scope path, primitive and type, in their order; then without the type. The rest stays unmatched.

import { base } from "./model.js";

const TYPE = /:([^=]*?)\s*=/;

const typeOf = (text) => TYPE.exec(text)?.[1] ?? "";
const loose = (eq, row) => `${eq.scope[row]}\n${eq.primitive[row]}\n${eq.direction[row]}`;
const strict = (eq, row) => `${loose(eq, row)}\n${typeOf(eq.text[row])}`;

/** Map from rows of the final program of `b` to rows of that of `a`. */
export function match(a, b) {
  const partner = new Map(),
    taken = new Set();
  for (const key of [strict, loose]) {
    const waiting = new Map();
    for (const row of a.rowsOf[a.final] ?? []) if (!taken.has(row)) push(waiting, key(a.eq, row), row);
    for (const row of b.rowsOf[b.final] ?? []) {
      if (partner.has(row)) continue;
      const found = waiting.get(key(b.eq, row))?.shift();
      if (found === undefined) continue;
      partner.set(row, found);
      taken.add(found);
    }
  }
  return partner;
}

function push(map, key, value) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(value);
}

const MEASURES = ["flops", "bytes", "held"];

/** Costs by source line of both final programs, where they differ: [{line, before, after}], the greatest change first. A line is known by its text, since its number may move. */
export function movers(a, b) {
  const sums = new Map();
  for (const [model, side] of [
    [a, "before"],
    [b, "after"],
  ])
    for (const row of model.rowsOf[model.final] ?? []) add(sums, model, side, row);
  const weight = (it, all) =>
    MEASURES.reduce((sum, name, i) => sum + Math.abs(it.after[name] - it.before[name]) / (all[i] || 1), 0);
  const all = MEASURES.map((name) => [...sums.values()].reduce((sum, it) => sum + it.before[name] + it.after[name], 0));
  return [...sums.values()]
    .filter((it) => MEASURES.some((name) => it.before[name] !== it.after[name]))
    .sort((x, y) => weight(y, all) - weight(x, all));
}

function add(sums, model, side, row) {
  const { eq, sources } = model,
    file = sources[eq.source[row]],
    text = file?.lines?.[eq.line[row] - 1]?.trim();
  const key = `${base(file?.file ?? "")}\n${text ?? eq.line[row]}\n${eq.function[row]}`;
  if (!sums.has(key))
    sums.set(key, {
      where: {},
      text: text ?? eq.function[row] ?? "",
      rows: [],
      before: { flops: 0, bytes: 0, held: 0 },
      after: { flops: 0, bytes: 0, held: 0 },
    });
  const it = sums.get(key);
  it.where[side] ??= model.where(row);
  if (side === "after") it.rows.push(row);
  for (const name of MEASURES) it[side][name] += eq[name][row];
}

/** Kernels of a target of one report whose set of equations no kernel of the other has: {lost: [k of a], made: [k of b]}. */
export function fusions(kernelsA, kernelsB, partner) {
  const key = (rows) => [...rows].sort((x, y) => x - y).join();
  const before = new Set(kernelsA.map((kernel) => key(kernel.rows)));
  const after = new Set(kernelsB.map((kernel) => key(kernel.rows.map((row) => partner.get(row) ?? `+${row}`))));
  return {
    lost: kernelsA.flatMap((kernel, k) => (kernel.rows.length && !after.has(key(kernel.rows)) ? [k] : [])),
    made: kernelsB.flatMap((kernel, k) =>
      kernel.rows.length && !before.has(key(kernel.rows.map((row) => partner.get(row) ?? `+${row}`))) ? [k] : [],
    ),
  };
}
