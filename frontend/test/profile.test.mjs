import assert from "node:assert/strict";
import { test } from "node:test";
import { layout, pathTo, tree } from "../src/profile/flame.js";
import { at, firstAfter, moved, pack, ticks, zoomed } from "../src/profile/lanes.js";
import { build, checked, resolve, times } from "../src/profile/model.js";
import { PROFILES, profile } from "./profiles.mjs";

const model = build(profile());
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-12, `${a} is not ${b}`);

test("runs that go on beside each other are in lanes of their own, by device", () => {
  const lanes = pack([0, 0, 1, 0, 0], [0, 1, 1, 4, 5], [3, 2, 9, 6, 7]);
  assert.deepEqual(lanes, [
    { device: 0, runs: [0, 3] },
    { device: 0, runs: [1, 4] },
    { device: 1, runs: [2] },
  ]);
});

test("no two runs of a lane overlap, and none is lost", () => {
  const { runs, lanes } = build(profile({ runs: 500, devices: 3 }));
  for (const { runs: lane } of lanes)
    for (let k = 1; k < lane.length; k++) assert.ok(runs.end[lane[k - 1]] <= runs.start[lane[k]]);
  assert.deepEqual(
    lanes.flatMap((it) => it.runs).sort((a, b) => a - b),
    [...Array(500).keys()],
  );
});

test("what the host did is in lanes of its own, with its lines", () => {
  const { hostLanes, activities, lines } = model;
  assert.deepEqual(
    hostLanes.map(({ title, runs }) => [title, runs]),
    [
      ["host", [0, 3, 4]],
      ["Python", [1]],
      ["transfers", [2]],
    ],
  );
  assert.deepEqual(
    [activities.name[2], activities.line[2], activities.bytes[2]],
    ["float32[512,512] to the device", lines[1], 2 ** 20],
  );
  assert.equal(activities.line[0], null);
});

test("what is at a time is found, and what is near it", () => {
  const lane = [0, 1, 2],
    start = [0, 10, 30],
    end = [5, 20, 40];
  assert.equal(firstAfter(lane, end, 5), 1);
  assert.equal(firstAfter(lane, end, 40), 3);
  assert.deepEqual(
    [3, 7, 15, 25, 50].map((time) => at(lane, start, end, time, 0)),
    [0, null, 1, null, null],
  );
  assert.equal(at(lane, start, end, 28, 3), 2);
});

test("a zoom keeps the time under the pointer, and stays inside", () => {
  const view = zoomed({ from: 100, to: 200 }, 0.5, 150, 1000, 1);
  assert.deepEqual(view, { from: 125, to: 175 });
  assert.deepEqual(zoomed({ from: 0, to: 500 }, 10, 250, 1000), { from: 0, to: 1000 });
  assert.deepEqual(moved({ from: 900, to: 950 }, 500, 1000), { from: 950, to: 1000 });
  assert.deepEqual(moved({ from: 10, to: 60 }, -500, 1000), { from: 0, to: 50 });
});

test("an axis has round marks", () => {
  assert.deepEqual(ticks(0, 100, 5), { step: 20, at: [0, 20, 40, 60, 80, 100] });
  assert.deepEqual(ticks(2, 3.4, 3).at, [2, 2.5, 3]);
});

test("times are added up from gaps", () => {
  const found = times({ gap: [0, 10, 5], duration: [3, 4, 100] });
  assert.deepEqual([...found.start], [0, 10, 15]);
  assert.deepEqual([...found.end], [3, 14, 115]);
});

test("the flame graph adds up on each level, the longest first", () => {
  const root = tree(model);
  near(root.seconds, model.content.totals.kernels);
  const check = (it) => {
    if (it.children.length) near(sum(it.children.map((child) => child.seconds)), it.seconds);
    it.children.forEach((child, i) => i && assert.ok(child.seconds <= it.children[i - 1].seconds));
    it.children.forEach(check);
  };
  check(root);
  const line = root.children.find((it) => it.kind === "file" && it.name.endsWith("train.py")).children[0].children[0];
  assert.deepEqual(
    pathTo(line).map((it) => it.name),
    ["all kernels", "/home/me/train.py", "layer", "train.py:4"],
  );
  assert.deepEqual(line.children.map((it) => it.name).sort(), [
    "tanh#e0, add#e1",
    "tanh#e2, add#e3",
    "tanh#e4, add#e5",
  ]);
});

test("boxes lie inside of those above them, and a zoom widens one to the whole", () => {
  const root = tree(model);
  const boxes = layout(root),
    ofNode = new Map(boxes.map((box) => [box.node, box]));
  for (const box of boxes) {
    const above = ofNode.get(box.node.parent);
    if (!above) continue;
    assert.equal(box.depth, above.depth + 1);
    assert.ok(box.x >= above.x - 1e-12 && box.x + box.width <= above.x + above.width + 1e-12);
  }
  const focus = root.children[0];
  assert.deepEqual(
    layout(focus)
      .slice(0, 2)
      .map(({ node, x, width, depth }) => [node, x, width, depth]),
    [
      [root, 0, 1, 0],
      [focus, 0, 1, 1],
    ],
  );
  assert.ok(layout(root, 0.2).every((box) => box.width >= 0.2));
});

test("a choice is a line with its kernels, or one kernel", () => {
  assert.deepEqual([...resolve(model, "line:0").kernels], [0, 2, 4]);
  assert.deepEqual([...resolve(model, "kernel:3").kernels], [3]);
  assert.equal(resolve(model, "kernel:3").line.title, "no line known");
  for (const pick of [null, "line:9", "kernel:x", "row:1"]) assert.equal(resolve(model, pick), null);
});

test("another JSON, and another schema, are errors in words", () => {
  assert.throws(() => checked({ schema: 1 }), /not the content of a profile's page/);
  assert.throws(() => checked({ ...profile(), schema: 2 }), /has schema 2, and this page reads schema 1/);
  for (const make of Object.values(PROFILES)) build(checked(make()));
});
