// The rules by which two reports are matched: the cases that tests/inspection/test_diff.py has too.

import { readFileSync } from "node:fs";
import { test } from "node:test";
import assert from "node:assert/strict";
import { insertions, match, matchKernels, movers } from "../src/match.js";
import { build } from "../src/model.js";
import { bare } from "./samples.mjs";

const golden = JSON.parse(readFileSync(new URL("../../tests/golden/report_matching.json", import.meta.url), "utf8"));
const sorted = (pairs) => [...pairs].sort((x, y) => x[0] - y[0] || x[1] - y[1]);

/** A model whose final program has these equations; what they do not say is that of `bare`. */
function program(rows, more = {}) {
  const report = { ...bare(), ...more };
  report.equations = Object.fromEntries(
    Object.entries(report.equations).map(([name, [first]]) => [name, rows.map((row) => row[name] ?? first)]),
  );
  return build(report);
}

const primitive = (text) => text.split(" = ")[1].split(/[ [\]]/)[0];
const equation = (row) => ({ ...row, primitive: primitive(row.text) });

for (const { case: name, before, after, pairs } of golden.equations)
  test(`equations: ${name}`, () => {
    const found = match(program(before.map(equation)), program(after.map(equation)));
    assert.deepEqual(sorted([...found].map(([a, b]) => [b, a])), pairs);
  });

for (const { case: name, before, after, equations, pairs } of golden.kernels)
  test(`kernels: ${name}`, () => {
    const found = matchKernels(before, after, new Map(equations.map(([b, a]) => [a, b])));
    assert.deepEqual(sorted([...found].map(([a, b]) => [b, a])), pairs);
  });

const COSTS = ["flops", "bytes", "held", "seconds", "equations"];

/** A model with a kernel for each equation. */
function timed({ sources, rows, roof = null }) {
  const kernels = rows.map(({ seconds, measured }, row) => ({ rows: [row], shares: [1], seconds, measured }));
  return program(rows, { sources, targets: [{ name: "here", kernels, roof }] });
}

for (const { case: name, before, after, moves } of golden.lines)
  test(`lines: ${name}`, () => {
    const cost = (side) => side && COSTS.map((key) => side[key]);
    const found = movers(timed(before), timed(after));
    assert.deepEqual(
      found.map((it) => [it.file, it.line, it.text, cost(it.before), cost(it.after)]),
      moves,
    );
  });

for (const { case: name, before, after, moves } of golden.inserted)
  test(`put in by XLA: ${name}`, () => {
    const [old, its] = [before, after].map(({ rows, sources, kernels }) =>
      program(rows.map(equation), { sources, targets: [{ name: "here", kernels }] }),
    );
    const cost = (side) => side && ["runs", "bytes", "measured"].map((key) => side[key]);
    const found = insertions(old, its, old.targets[0], its.targets[0], match(old, its));
    assert.deepEqual(
      found.map((it) => [it.kind, it.type, it.line, cost(it.before), cost(it.after)]),
      moves,
    );
  });
