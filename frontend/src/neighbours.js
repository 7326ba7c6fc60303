// The equations around one equation, folded so that a picture of them has at most 60 nodes.

const LIMIT = 60;
const STEPS = 2;

/** Users of each row of a stage. */
export function users(model, stage) {
  const out = new Map();
  for (const row of model.rowsOf[stage] ?? [])
    for (const operand of model.eq.operands[row]) {
      if (!out.has(operand)) out.set(operand, []);
      out.get(operand).push(row);
    }
  return out;
}

/** Rows within two steps, up and down, with their distance: Map(row -> steps). */
export function around(model, row, using, steps = STEPS) {
  const distance = new Map([[row, 0]]);
  for (const next of [(it) => model.eq.operands[it], (it) => using.get(it) ?? []]) {
    let edge = [row];
    for (let step = 1; step <= steps; step++) {
      edge = [...new Set(edge.flatMap(next))].filter((it) => !distance.has(it));
      for (const it of edge) distance.set(it, step);
    }
  }
  return distance;
}

/**
 * The graph {nodes: [{id, rows, scope | null}], edges: [[id, id]], left} around a row. Rows of other named scopes fold into one node for each
 * scope, when there are too many or `fold` is set; then rows of one primitive at one distance; `left` counts what is not shown.
 */
export function neighbourhood(model, row, using, { fold = false, limit = LIMIT } = {}) {
  const distance = around(model, row, using),
    rows = [...distance.keys()],
    { eq } = model;
  const own = (it) => `row ${it}`;
  const scoped = (it) => (eq.scope[it] === eq.scope[row] || !eq.scope[it] ? own(it) : `scope ${eq.scope[it]}`);
  const alike = (it) => (distance.get(it) < 2 ? scoped(it) : `${eq.primitive[it]} ${distance.get(it)} ${eq.scope[it]}`);
  const ways = [own, scoped, alike].slice(fold ? 1 : 0);
  const way = ways.find((key) => new Set(rows.map(key)).size <= limit) ?? alike;
  const groups = new Map();
  for (const it of rows) groups.set(way(it), [...(groups.get(way(it)) ?? []), it]);
  const kept = [...groups]
    .sort((a, b) => Math.min(...a[1].map((it) => distance.get(it))) - Math.min(...b[1].map((it) => distance.get(it))))
    .slice(0, limit);
  const owner = new Map(kept.flatMap(([id, its]) => its.map((it) => [it, id])));
  const edges = new Map();
  for (const it of rows)
    for (const operand of eq.operands[it]) {
      const [from, to] = [owner.get(operand), owner.get(it)];
      if (from !== undefined && to !== undefined && from !== to) edges.set(`${from}\n${to}`, [from, to]);
    }
  return {
    nodes: kept.map(([id, its]) => ({ id, rows: its, scope: id.startsWith("scope ") ? eq.scope[its[0]] : null })),
    edges: [...edges.values()],
    left: rows.length - owner.size,
  };
}
