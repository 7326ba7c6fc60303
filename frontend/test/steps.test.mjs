import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "../src/model.js";
import { align, steps } from "../src/steps.js";
import { mlp } from "./samples.mjs";

const tally = (pairs) =>
  Object.fromEntries(
    ["same", "added", "removed", "changed", "moved"].map((kind) => [
      kind,
      pairs.filter((pair) => pair.kind === kind).length,
    ]),
  );

/** A report whose passes have only the lines that change. */
function abbreviated() {
  const report = mlp(1),
    pass = (title, of, lines, made, gone) => ({
      kind: "pass",
      title,
      target: 0,
      of,
      rewrite: title,
      changed: lines.length > 0,
      seconds: null,
      count: 9,
      lines,
      rows: lines.map(() => []),
      made,
      gone,
    });
  const first = report.stages.length;
  report.stages.push(
    pass("before", 5, ["  … 7 lines", "ENTRY main {", "  b = old(a)"], [], [2]),
    pass("simplify", first, ["ENTRY main {", "  b = new(a)", "  c = kept(a)", "  d = going(a)"], [1, 2], [3]),
    pass("nothing", first + 1, [], [], []),
    pass("dce", first + 1, ["  … 8 lines"], [], []),
    { ...report.stages[5], kind: "hlo", title: "whole", target: 0, of: first + 3 },
  );
  return [build(report), first];
}

test("a pass is what it made beside what is gone of the text before it", () => {
  const [model, first] = abbreviated();
  assert.deepEqual(tally(align(model, first + 1)), { same: 0, added: 2, removed: 1, changed: 0, moved: 0 });
  assert.deepEqual(
    align(model, first + 3).map(({ left, kind }) => [left, kind]),
    [["  d = going(a)", "removed"]],
  );
  assert.deepEqual(align(model, first + 2), []);
});

test("whole texts are compared with whole texts, and the first pass with nothing", () => {
  const [model, first] = abbreviated(),
    its = steps({ model, state: { target: 0 } }, true);
  assert.ok(!its.includes(first) && its.includes(first + 2) && its.includes(first + 4));
  assert.ok(align(model, first + 4).every(({ left, right }) => left === right));
  assert.ok(!steps({ model, state: { target: 0 } }, false).includes(first + 2));
});

test("lines of another language stand beside what they came from", () => {
  const [model] = abbreviated(),
    pairs = align(model, 5);
  assert.ok(pairs.every((pair) => pair.kind === "became"));
  const tanh = pairs.filter((pair) => pair.left?.includes("= tanh"));
  assert.ok(tanh.length && tanh.every((pair) => pair.right.includes("stablehlo.tanh")));
});

test("jaxprs are compared by row", () => {
  const [model] = abbreviated();
  assert.deepEqual(tally(align(model, 2)), { same: 8, added: 2, removed: 0, changed: 0, moved: 0 });
});
