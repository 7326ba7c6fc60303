// The report with the indexes that the screens need: one table of equations, and from each row to its line, stages and kernels.

import schema from "../../xlamini/inspection/assets/schema.json" with { type: "json" };

const COLUMNS = Object.keys(schema.equations).map((name) => name.replace(/\?+$/, ""));
const JAXPR = "jaxpr";

/** The model of a report. */
export function build(report) {
  const eq = Object.fromEntries(COLUMNS.map((name) => [name, report.equations?.[name] ?? []]));
  const n = eq.stage.length;
  const stages = (report.stages ?? []).map((stage) => ({
    ...stage,
    lines: stage.lines ?? [],
    rows: rowsOfLines(stage),
  }));
  const model = {
    report,
    eq,
    n,
    stages,
    final: report.final,
    targets: (report.targets ?? []).map(whole),
    sources: report.sources ?? [],
    memos: new Map(),
  };
  model.rowsOf = grouped(n, stages.length, (row) => eq.stage[row]);
  model.children = grouped(n, n, (row) => eq.parent[row]);
  model.sites = bySite(eq, n);
  return Object.assign(model, methods(model));
}

/** The rows of each line; in a jaxpr, the further lines of an equation are its own. */
function rowsOfLines(stage) {
  const rows = (stage.lines ?? []).map((_, i) => stage.rows?.[i] ?? []),
    open = [];
  if (stage.kind !== JAXPR) return rows;
  let depth = 0;
  return rows.map((its, i) => {
    const before = depth,
      shown = its.length ? its : (open.at(-1)?.its ?? its);
    for (const c of stage.lines[i]) depth += "[{(".includes(c) ? 1 : "]})".includes(c) ? -1 : 0;
    if (its.length && depth > before) open.push({ its, depth: before });
    while (open.length && depth <= open.at(-1).depth) open.pop();
    return shown;
  });
}

const PARTS = {
  unavailable: {},
  seconds: {},
  kernels: [],
  boundaries: [],
  own_kernels: [],
  moments: [],
  buffers: [],
  collectives: [],
};

/** A target whose missing parts are empty. */
const whole = (target) =>
  Object.assign(
    { ...target },
    Object.fromEntries(Object.entries(PARTS).map(([name, empty]) => [name, target[name] ?? empty])),
  );

function grouped(n, groups, key) {
  const out = Array.from({ length: groups }, () => []);
  for (let row = 0; row < n; row++) out[key(row)]?.push(row);
  return out;
}

function bySite(eq, n) {
  const sites = new Map();
  for (let row = 0; row < n; row++) {
    if (eq.source[row] === null || eq.line[row] === null) continue;
    const key = `${eq.source[row]}:${eq.line[row]}`;
    if (!sites.has(key)) sites.set(key, []);
    sites.get(key).push(row);
  }
  return sites;
}

function methods(model) {
  const memo = (name, make) => {
    if (!model.memos.has(name)) model.memos.set(name, make());
    return model.memos.get(name);
  };
  return {
    lineage: (rows) => lineage(model, rows),
    where: (row) => where(model, row),
    isJaxpr: (stage) => model.stages[stage]?.kind === JAXPR,
    linesOf: (stage) => memo(`lines ${stage}`, () => linesOf(model, stage)),
    stagesFor: (target) => memo(`stages ${target}`, () => stagesFor(model, target)),
    kernelsOf: (target) => memo(`kernels ${target}`, () => kernelsOf(model, target)),
    measure: (name, target) =>
      memo(`measure ${name} ${name in SECONDS ? target : ""}`, () => measure(model, name, target)),
    siteHeat: (name, target) => memo(`sites ${name} ${target}`, () => siteHeat(model, name, target)),
    unavailable: (target, screen) => unavailable(model, target, screen),
  };
}

/** `rows`, what they were derived from, and what was derived from them. */
function lineage(model, rows) {
  const found = new Set(rows);
  for (const row of rows) {
    for (let up = model.eq.parent[row]; up !== null && up !== undefined && !found.has(up); up = model.eq.parent[up])
      found.add(up);
  }
  const open = [...rows];
  while (open.length) {
    for (const child of model.children[open.pop()] ?? []) {
      if (!found.has(child)) {
        found.add(child);
        open.push(child);
      }
    }
  }
  return found;
}

/** "train.py:12", or "" for an equation without a line. */
function where(model, row) {
  const source = model.sources[model.eq.source[row]];
  return source && model.eq.line[row] !== null ? `${base(source.file)}:${model.eq.line[row]}` : "";
}

/** The last part of a path. */
export const base = (path) => String(path).split(/[\\/]/).pop();

/** From a row to the lines of a stage that show it. */
function linesOf(model, stage) {
  const lines = new Map();
  (model.stages[stage]?.rows ?? []).forEach((rows, line) => {
    for (const row of rows) {
      if (!lines.has(row)) lines.set(row, []);
      lines.get(row).push(line);
    }
  });
  return lines;
}

/** The stages that have text for a target, in order. */
function stagesFor(model, target) {
  return model.stages.flatMap((stage, i) =>
    stage.kind !== "source" && (stage.target === null || stage.target === target) && stage.lines?.length ? [i] : [],
  );
}

function kernelsOf(model, target) {
  const kernels = new Map();
  (model.targets[target]?.kernels ?? []).forEach((kernel, k) => {
    for (const row of kernel.rows) {
      if (!kernels.has(row)) kernels.set(row, []);
      kernels.get(row).push(k);
    }
  });
  return kernels;
}

const own = (part) => (kernel) => (kernel.inserted ? 0 : kernel.measured?.[part]);

/** The measures that are seconds of kernels; what XLA put in has measured ones of its own. */
const SECONDS = { time: (kernel) => kernel.seconds, measured: own("seconds"), low: own("low"), high: own("high") };

/** A number for each row. A kernel's equations share its time as the report says. */
function measure(model, name, target) {
  const seconds = SECONDS[name];
  if (!seconds) return model.eq[name];
  const out = new Array(model.n).fill(0);
  for (const kernel of model.targets[target]?.kernels ?? []) {
    kernel.rows.forEach((row, i) => (out[row] += (seconds(kernel) ?? 0) * kernel.shares[i]));
  }
  return out;
}

/** The measure summed by source line over the final program, for a time that of the target: {"0:12": 3e9}. */
function siteHeat(model, name, target) {
  const values = model.measure(name, target);
  const final = name in SECONDS ? (model.targets[target]?.final ?? model.final) : model.final;
  const out = new Map();
  for (const [key, rows] of model.sites) {
    const sum = rows.reduce((total, row) => total + (model.eq.stage[row] === final ? values[row] : 0), 0);
    if (sum) out.set(key, sum);
  }
  return out;
}

/** Why a target cannot show a screen, or null. */
function unavailable(model, target, screen) {
  const it = model.targets[target];
  if (!it)
    return model.report.failure
      ? `“${model.report.failure.stage}” failed: ${model.report.failure.error}`
      : "the report has no targets";
  if (it.error) return it.error;
  return it.unavailable[screen] ?? null;
}
