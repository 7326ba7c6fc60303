import assert from "node:assert/strict";
import { test } from "node:test";
import { alignLines, alignRows, alignTranslated, increasing, nameless, variableless } from "../src/align.js";

const kinds = (pairs) => pairs.map(({ left, right, kind }) => `${left ?? ""}>${right ?? ""} ${kind}`);
const texts = { 0: "a", 1: "b", 2: "c", 10: "a", 11: "x", 12: "b", 13: "C", 14: "c" };
const align = (left, right, parents) =>
  kinds(
    alignRows(
      left,
      right,
      (row) => parents[row] ?? null,
      (a, b) => texts[a] === texts[b],
    ),
  );

test("rows are paired with what they come from; the rest is added or removed", () => {
  assert.deepEqual(align([0, 1, 2], [10, 11, 12, 13], { 10: 0, 12: 1, 13: 2 }), [
    "0>10 same",
    ">11 added",
    "1>12 same",
    "2>13 changed",
  ]);
  assert.deepEqual(align([0, 1, 2], [10], { 10: 0 }), ["0>10 same", "1> removed", "2> removed"]);
});

test("a row that changed its place is moved", () => {
  assert.deepEqual(align([0, 1, 2], [14, 10, 12], { 10: 0, 12: 1, 14: 2 }), ["2>14 moved", "0>10 same", "1>12 same"]);
});

test("of several rows made of one, the one with its text is its partner", () => {
  assert.deepEqual(align([1], [11, 12], { 11: 1, 12: 1 }), [">11 added", "1>12 same"]);
});

test("increasing subsequences", () => {
  const numbers = [3, 0, 1, 7, 2, 4];
  assert.deepEqual(
    increasing(numbers).map((i) => numbers[i]),
    [0, 1, 2, 4],
  );
  assert.deepEqual(increasing([]), []);
});

test("names of variables and numbers of instructions are no change", () => {
  assert.equal(variableless("d:f32[4] = mul a b"), variableless("xy:f32[4] = mul q _"));
  assert.notEqual(variableless("d:f32[4] = mul a b"), variableless("d:f32[4] = add a b"));
  assert.notEqual(variableless("d:f32[4] = mul a b"), variableless("d:f32[8] = mul a b"));
  assert.equal(nameless("%fusion.3 = f32[4] add(%p.1, %q)"), nameless("%fusion.71 = f32[4] add(%p.2, %q)"));
});

test("texts are aligned by line, equations keep changed lines together, moved lines are found", () => {
  const pairs = alignLines(["a", "%x = add(b)", "z"], ["a", "%x = sub(b)", "z"], [[], [4], []], [[], [4], []]);
  assert.deepEqual(kinds(pairs), ["0>0 same", "1>1 changed", "2>2 same"]);
  assert.deepEqual(kinds(alignLines(["first", "second", "third"], ["second", "third", "first"])), [
    "1>0 same",
    "2>1 same",
    "0>2 moved",
  ]);
  assert.deepEqual(kinds(alignLines([], ["x"])), [">0 added"]);
});

test("of two languages, an equation's lines stand beside each other, and none is lost", () => {
  const pairs = alignTranslated([[], [1], [1], [2]], [[], [2], [1], [1], [1], [9]]).map(({ left, right }) => [
    left,
    right,
  ]);
  assert.deepEqual(pairs, [
    [0, 0],
    [1, 2],
    [2, 3],
    [null, 4],
    [3, 1],
    [null, 5],
  ]);
});
