// Equations, kernels and lines of two reports matched, by the rules of xlamini/inspection/matching.py and diff.py, which have the reasons.
// Cases that both must get right are in tests/golden/report_matching.json.

import { base } from "./model.js";
import { users } from "./neighbours.js";

const NONE = [];

/** The types of an equation's results, from its text. */
const typeOf = (text) =>
  text
    .split(" = ", 1)[0]
    .split(/\s+/)
    .filter((word) => word.includes(":"))
    .map((word) => word.slice(word.indexOf(":") + 1))
    .join(" ");

const keyOf = ({ eq }, row) => [eq.scope[row], eq.primitive[row], eq.direction[row], typeOf(eq.text[row])].join("\n");

/** The final program of a report, and which of its rows have a partner. */
class Program {
  constructor(model) {
    this.rows = model.rowsOf[model.final] ?? NONE;
    Object.assign(this, { eq: model.eq, partners: new Map(), users: users(model, model.final) });
    this.keys = new Map(this.rows.map((row) => [row, keyOf(model, row)]));
  }

  /** Those of the rows that belong to the program and have no partner, each once. */
  free(rows) {
    return [...new Set(rows)].filter((row) => this.keys.has(row) && !this.partners.has(row));
  }

  neighbours(row) {
    return [this.eq.operands[row], this.users.get(row) ?? NONE];
  }

  groups() {
    const found = new Map();
    for (const row of this.free(this.rows)) push(found, this.keys.get(row), row);
    return found;
  }
}

/** Map from rows of the final program of `before` to rows of that of `after`; `match(b, a).get(row of a)` is the row of b. */
export function match(before, after) {
  const [old, its] = [new Program(before), new Program(after)];
  spread(old, its, pairGroups(old, its, true));
  spread(old, its, pairGroups(old, its, false));
  return its.partners;
}

function pair(old, its, b, a) {
  old.partners.set(b, a);
  its.partners.set(a, b);
  return [b, a];
}

/** Pairs what is left of each key in order; with `equal`, only where both sides have equally many. */
function pairGroups(old, its, equal) {
  const olds = old.groups(),
    found = [];
  for (const [key, rows] of its.groups()) {
    const partners = olds.get(key) ?? NONE;
    if (equal && partners.length !== rows.length) continue;
    for (let i = 0; i < Math.min(partners.length, rows.length); i++) found.push([partners[i], rows[i]]);
  }
  return found.sort((x, y) => x[1] - y[1]).map(([b, a]) => pair(old, its, b, a));
}

/** Pairs the neighbours of pairs, and theirs. */
function spread(old, its, pairs) {
  const queue = [...pairs];
  for (let i = 0; i < queue.length; i++) {
    const [olds, news] = [old.neighbours(queue[i][0]), its.neighbours(queue[i][1])];
    for (const side of [0, 1])
      for (const row of its.free(news[side])) {
        const partner = nearest(old, old.free(olds[side]), its.keys.get(row), its.eq.primitive[row]);
        if (partner !== undefined) queue.push(pair(old, its, partner, row));
      }
  }
}

/** The first row with this key, or else with its primitive. */
const nearest = (old, rows, key, primitive) =>
  rows.find((row) => old.keys.get(row) === key) ?? rows.find((row) => old.eq.primitive[row] === primitive);

/** Map from kernels after to kernels before, given the partners of equations. */
export function matchKernels(before, after, partners) {
  const found = new Map(),
    taken = new Set();
  for (const [b, a] of [...byContents(before, after, partners), ...byType(before, after)]) {
    if (found.has(a) || taken.has(b)) continue;
    found.set(a, b);
    taken.add(b);
  }
  return found;
}

function byContents(before, after, partners) {
  const holders = new Map(),
    shared = new Map();
  before.forEach((kernel, b) => kernel.rows.forEach((row) => push(holders, row, b)));
  after.forEach((kernel, a) =>
    kernel.rows.forEach((row) => {
      for (const b of holders.get(partners.get(row)) ?? NONE) {
        const it = shared.get(`${b} ${a}`) ?? { b, a, count: 0 };
        shared.set(`${b} ${a}`, { ...it, count: it.count + 1 });
      }
    }),
  );
  return [...shared.values()].sort((x, y) => y.count - x.count || x.a - y.a || x.b - y.b).map(({ b, a }) => [b, a]);
}

function byType(before, after) {
  const left = new Map(),
    key = (kernel) => `${kernel.opcode}\n${kernel.type}`;
  before.forEach((kernel, b) => kernel.rows.length || push(left, key(kernel), b));
  return after.flatMap((kernel, a) => {
    const b = kernel.rows.length ? undefined : left.get(key(kernel))?.shift();
    return b === undefined ? [] : [[b, a]];
  });
}

/** What became of the kernels of a target: {same, changed: [{before, after, left: rows, joined: rows}], lost, made}. */
export function kernelDiff(before, after, partners) {
  const pairs = matchKernels(before, after, partners),
    paired = new Set(pairs.values()),
    changed = [];
  for (const [a, b] of [...pairs].sort((x, y) => x[0] - y[0])) {
    const inside = new Set(after[a].rows.map((row) => partners.get(row))),
      earlier = new Set(before[b].rows);
    const joined = after[a].rows.filter((row) => !earlier.has(partners.get(row))),
      left = before[b].rows.filter((row) => !inside.has(row));
    if (joined.length || left.length) changed.push({ before: b, after: a, left, joined });
  }
  const others = (kernels, has) => kernels.flatMap((_, k) => (has(k) ? [] : [k]));
  return {
    same: pairs.size - changed.length,
    changed,
    lost: others(before, (b) => paired.has(b)),
    made: others(after, (a) => pairs.has(a)),
  };
}

const MEASURES = ["runs", "flops", "bytes", "held", "seconds", "measured", "equations"];

/** Whether the times of two reports differ by the program alone. */
export const sameRoof = (before, after) => JSON.stringify(before.roof) === JSON.stringify(after.roof);

/**
 * Costs by source line of both final programs, where they differ: [{line, text, rows, before, after}], what moved most first. `before` and
 * `after` are null where the line is not there; seconds are those of the first target that both have, the predicted ones if it has the same
 * roof. Measured ones differ where the spreads of their calls do not meet.
 */
export function movers(before, after) {
  const target = after.targets.find((it) => before.targets.some((other) => other.name === it.name)),
    other = before.targets.find((it) => it.name === target?.name),
    predicted = target && sameRoof(other, target),
    withText = haveTexts(before, after);
  return changes(...[before, after].map((model) => lineCosts(model, target?.name, predicted, withText)));
}

/** What XLA put in for lines of two targets, where it differs, with its `kind` and `type`, as `movers`; lines of partners are the same. */
export function insertions(before, after, other, target, partner) {
  const withText = haveTexts(before, after),
    old = (row) => placeOf(before, row, withText),
    its = (row) => placeOf(after, row, withText);
  return changes(
    insertionCosts(other, old, old),
    insertionCosts(target, its, (row) => (partner.has(row) ? old(partner.get(row)) : its(row))),
  );
}

function insertionCosts({ kernels }, place, line) {
  const found = new Map(),
    timed = kernels.some((it) => it.measured);
  for (const { kind, type, rows, inserted, runs, bytes, measured } of kernels) {
    if (!inserted) continue;
    const key = [kind, type, keyOfPlace(line(rows[0]))].join("\n"),
      { seconds = 0, low = 0, high = 0 } = measured ?? {};
    if (!found.has(key))
      found.set(key, {
        place: { kind, type, ...place(rows[0]) },
        rows,
        cost: { runs: 0, bytes: 0, ...times(timed) },
      });
    const { cost } = found.get(key),
      more = { runs, bytes, ...(timed && { measured: seconds, low, high }) };
    for (const name in more) cost[name] += more[name];
  }
  return found;
}

const times = (timed) => {
  const none = timed ? 0 : null;
  return { measured: none, low: none, high: none };
};

const haveTexts = (...models) => models.every(({ sources }) => sources.every((it) => it.library || it.lines?.length));

function changes(...sums) {
  const totals = MEASURES.map((name) =>
    Math.max(...sums.map((costs) => [...costs.values()].reduce((sum, it) => sum + (it.cost[name] ?? 0), 0))),
  );
  const moved = ({ before, after }) =>
    MEASURES.reduce((sum, name, i) => sum + (totals[i] ? Math.abs(gain(before, after, name)) / totals[i] : 0), 0);
  return [...new Set([...sums[0].keys(), ...sums[1].keys()])]
    .map((key) => {
      const [old, its] = sums.map((costs) => costs.get(key));
      return { ...(its ?? old).place, rows: its?.rows ?? NONE, before: old?.cost ?? null, after: its?.cost ?? null };
    })
    .filter(({ before, after }) => !before || !after || MEASURES.some((name) => differ(before, after, name)))
    .sort((x, y) => moved(y) - moved(x) || compare(x.file, y.file) || x.line - y.line);
}

/** Whether two spreads of measured times have one in common; what was not measured meets all. */
export const meet = (x, y) => !(x.low > y.high || y.low > x.high);

/** How much more of something a line has; no measured time if that is within the spread. */
export function gain(before, after, name) {
  if (
    name === "measured" &&
    before &&
    after &&
    (before.measured === null || after.measured === null || meet(before, after))
  )
    return 0;
  return (after?.[name] ?? 0) - (before?.[name] ?? 0);
}

/** Whether two lines differ in something; an amount that is not known differs from none. */
const differ = (before, after, name) =>
  before[name] !== null && after[name] !== null && gain(before, after, name) !== 0;

const compare = (x, y) => (x < y ? -1 : x > y ? 1 : 0);

/** The cost of each line, by what names it in another version of its file: file name, function and text, else the number. */
function lineCosts(model, targetName, predicted, withText) {
  const t = model.targets.findIndex((it) => it.name === targetName),
    kernels = model.targets[t]?.kernels ?? NONE,
    timed = predicted && kernels.some((it) => it.rows.length && it.seconds !== null),
    measured = kernels.some((it) => it.measured),
    found = new Map();
  const at = (row) => {
    const place = placeOf(model, row, withText),
      key = keyOfPlace(place);
    if (!found.has(key))
      found.set(key, {
        place,
        rows: [],
        cost: {
          flops: 0,
          bytes: 0,
          held: 0,
          seconds: timed ? 0 : null,
          ...times(measured),
          equations: 0,
        },
      });
    return found.get(key);
  };
  for (const row of model.rowsOf[model.final] ?? NONE) {
    const { cost, rows } = at(row);
    rows.push(row);
    cost.equations++;
    for (const name of ["flops", "bytes", "held"]) cost[name] += model.eq[name][row];
  }
  const add = (name, part) => model.measure(name, t).forEach((time, row) => time && (at(row).cost[part] += time));
  if (timed) add("time", "seconds");
  for (const name of ["measured", "low", "high"]) add(name, name);
  return found;
}

const keyOfPlace = ({ file, function: name, text, line }) => [base(file), name, text || line].join("\n");

function placeOf({ eq, sources }, row, withText) {
  const source = sources[eq.source[row]],
    line = eq.line[row];
  if (!source || line === null) return { file: "", function: "", line: 0, text: "" };
  return {
    file: source.file,
    function: eq.function[row] ?? "",
    line,
    text: withText ? (source.lines?.[line - 1]?.trim() ?? "") : "",
  };
}

function push(map, key, value) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(value);
}
