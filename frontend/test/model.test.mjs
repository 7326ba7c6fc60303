import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { checked, fromFile } from "../src/decode.js";
import { folded } from "../src/folds.js";
import { build } from "../src/model.js";
import { perfetto } from "../src/exports/graphs.js";
import { kernelDiff, match, movers } from "../src/match.js";
import { neighbourhood, users } from "../src/neighbours.js";
import { findLines, findRows } from "../src/search.js";
import { DEFAULTS, fromFragment, resolve, toFragment } from "../src/state.js";
import { unpack } from "../src/unpack.js";
import { bare, mlp } from "./samples.mjs";

const model = build(mlp());
const find = (stage, primitive) => model.rowsOf[stage].find((row) => model.eq.primitive[row] === primitive);

test("the lineage of a row goes to what it came from and to what it became, not to its sisters", () => {
  const row = find(2, "tanh"),
    lit = model.lineage([row]);
  assert.ok(lit.has(find(1, "tanh")) && lit.has(find(model.final, "tanh")));
  assert.ok([...lit].every((it) => model.eq.primitive[it] === "tanh"));
});

test("heat adds up the final program by line, and time adds up to that of the kernels", () => {
  const all = model.rowsOf[model.final].reduce((sum, row) => sum + model.eq.flops[row], 0);
  const sum = (heat) => [...heat.values()].reduce((a, b) => a + b, 0);
  assert.equal(sum(model.siteHeat("flops", 0)), all);
  const traced = model.targets[2].kernels
    .filter((kernel) => kernel.rows.length)
    .reduce((total, kernel) => total + kernel.seconds, 0);
  assert.ok(Math.abs(sum(model.siteHeat("time", 2)) / traced - 1) < 1e-9);
});

test("the time of a line on a target is that of the program that was lowered for it", () => {
  const report = mlp(1);
  const [earlier, row] = [1, model.rowsOf[1].find((it) => model.eq.line[it] !== null)];
  report.targets[2] = {
    ...report.targets[2],
    final: earlier,
    kernels: [{ ...report.targets[2].kernels[0], rows: [row], shares: [1], seconds: 3 }],
  };
  const heat = build(report).siteHeat("time", 2);
  assert.deepEqual([...heat.values()], [3]);
});

test("equations share the time of their kernel as the report says", () => {
  const report = bare();
  for (const column of Object.values(report.equations)) column.push(column[0]);
  report.targets = [{ name: "x", kernels: [{ rows: [0, 1], shares: [0.25, 0.75], seconds: 4 }] }];
  assert.deepEqual(build(report).measure("time", 0), [1, 3]);
});

test("a target that cannot be shown says why", () => {
  assert.match(model.unavailable(3, "kernels"), /no topology is named v9/);
  assert.match(model.unavailable(0, "boundaries"), /gives no reasons/);
  assert.equal(model.unavailable(1, "kernels"), null);
});

test("parts of a target may be null", () => {
  const report = mlp(1);
  report.targets = [{ name: "x", error: null, unavailable: null, kernels: null, boundaries: null, moments: null }];
  assert.deepEqual(build(report).targets[0].kernels, []);
  assert.equal(build(report).unavailable(0, "kernels"), null);
});

test("the state goes through the fragment of the address and back", () => {
  const state = { ...DEFAULTS, screen: "memory", stage: 3, target: 1, pick: "scope:a/b c&d=é", heat: "held" };
  assert.deepEqual(fromFragment(toFragment(state)), state);
  assert.equal(toFragment(DEFAULTS), "#");
  assert.deepEqual(fromFragment("#stage=-5&nonsense=1&target=x"), { ...DEFAULTS, stage: 0 });
});

test("a choice is resolved to rows, or to nothing", () => {
  assert.deepEqual(resolve(model, "row:3").rows, [3]);
  assert.ok(resolve(model, "line:0:9").rows.length > 4);
  assert.ok(resolve(model, "scope:model/layer1").rows.every((row) => model.eq.scope[row] === "model/layer1"));
  assert.equal(resolve(model, "kernel:2:1").kernel, model.targets[2].kernels[1]);
  for (const nothing of ["row:999999", "row:x", "kernel:9:1", "what", null])
    assert.equal(resolve(model, nothing), null);
});

test("search by text, line, function, primitive and scope", () => {
  const rows = model.rowsOf[model.final],
    names = (query) => new Set(findRows(model, query, rows).map((row) => model.eq.primitive[row]));
  assert.deepEqual(names("primitive:tanh"), new Set(["tanh"]));
  assert.deepEqual(names("line:19"), new Set(["sub", "integer_pow", "reduce_sum", "div"]));
  assert.deepEqual(names("function:loss"), new Set(["sub", "integer_pow", "reduce_sum", "div"]));
  assert.equal(findRows(model, "scope:layer2 primitive:tanh", rows).length, 1);
  assert.deepEqual(names("named_scope"), new Set());
  assert.deepEqual(names("jnp.mean((x"), names("line:19"));
  assert.deepEqual(findLines(model, "learning rate", 9), [[0, 4]]);
  assert.equal(findRows(model, "nothing has this", rows).length, 0);
});

test("further lines of an equation belong to it, those of a nested one to that", () => {
  const report = bare();
  const lines = [
    "{ lambda ; a:f32[]. let",
    "  b:f32[] = scan[",
    "    jaxpr={ lambda ; c:f32[]. let",
    "      d:f32[] = dot[",
    "        x=(1, 2)",
    "      ] c",
    "    in (d,) }",
    "    length=3",
    "  ] a",
    "  in (b,) }",
  ];
  Object.assign(report.stages[0], { lines, rows: [[], [7], [], [8], [], [], [], [], [], []] });
  assert.deepEqual(build(report).stages[0].rows, [[], [7], [7], [8], [8], [8], [7], [7], [7], []]);
});

test("lines fold by scope, at each depth", () => {
  const scopes = ["", "a/x", "a/x", "a/y", "", "a"],
    rows = scopes.map((_, i) => [i]),
    scopeOf = (row) => scopes[row];
  const shown = (open) => folded(rows, scopeOf, new Set(open)).map((it) => it.scope ?? it.line);
  assert.deepEqual(shown([]), [0, "a", 4, "a"]);
  assert.deepEqual(shown(["1/0"]), [0, "a", "x", "y", 4, "a"]);
  assert.deepEqual(shown(["1/0", "1/1"]), [0, "a", "x", 1, 2, "y", 4, "a"]);
});

test("equations of two reports are matched; what differs is counted by line", () => {
  const other = build(mlp(5)),
    partner = match(other, model);
  assert.equal(partner.size, model.rowsOf[model.final].length);
  for (const [row, its] of partner) assert.equal(model.eq.scope[row], other.eq.scope[its]);
  const changed = movers(other, model);
  assert.equal(changed[0].after.flops / changed[0].before.flops, 0.8);
  assert.deepEqual(movers(model, build(mlp())), []);
  const { kernels } = model.targets[0];
  const found = kernelDiff(kernels, kernels, match(model, build(mlp())));
  assert.deepEqual(found, { same: kernels.length, changed: [], lost: [], made: [] });
});

test("a neighbourhood has at most 60 nodes, and folds scopes", () => {
  const wide = mlp(1);
  wide.equations.operands = wide.equations.operands.map((_, row) => (row ? [0] : []));
  for (const it of [model, build(wide)])
    for (const row of [it.rowsOf[it.final][0], it.rowsOf[it.final].at(-1), 0]) {
      const graph = neighbourhood(it, row, users(it, it.eq.stage[row]));
      assert.ok(graph.nodes.length <= 60 && graph.nodes.some((node) => node.rows.includes(row)));
    }
  const row = find(model.final, "integer_pow"),
    plain = neighbourhood(model, row, users(model, model.final)),
    folded = neighbourhood(model, row, users(model, model.final), { fold: true });
  assert.ok(folded.nodes.length <= plain.nodes.length);
  const few = neighbourhood(model, row, users(model, model.final), { limit: 2 });
  assert.ok(few.nodes.length <= 2 && few.left > 0);
});

test("slices for Perfetto do not overlap in whole nanoseconds", () => {
  const report = mlp(1);
  report.targets[0].kernels.forEach((kernel, k) => (kernel.seconds = 1e-9 * (500.6 + k / 7)));
  const { traceEvents } = JSON.parse(perfetto(build(report)));
  const spans = traceEvents.filter((it) => it.ph === "X" && it.tid === 2).map((it) => [1000 * it.ts, 1000 * it.dur]);
  assert.equal(spans.length, report.targets[0].kernels.length);
  for (const cut of [Math.trunc, Math.round])
    spans.slice(1).forEach(([ts], k) => assert.ok(cut(spans[k][0]) + cut(spans[k][1]) <= cut(ts)));
});

test("reports are read from a page and from JSON; others are errors", async () => {
  const text = gzipSync(JSON.stringify(bare())).toString("base64");
  assert.deepEqual(await unpack(text), bare());
  assert.equal(
    (await fromFile(`<html><script id="report" type="application/octet-stream">${text}</script>`)).name,
    "f",
  );
  assert.equal((await fromFile(JSON.stringify(bare()))).name, "f");
  await assert.rejects(fromFile("x"), /neither a page nor the JSON/);
  assert.throws(() => checked({ schema: 2 }), /has schema 2/);
  assert.throws(() => checked(null), /has no schema/);
  const old = mlp(1);
  delete old.targets[0].kernels[0].shares;
  await assert.rejects(fromFile(JSON.stringify(old)), /its kernels have no shares/);
});
