import assert from "node:assert/strict";
import { test } from "node:test";
import { dot, modelExplorer, perfetto } from "../src/exports/graphs.js";
import { parts, portable, quoted, reproducer, whole } from "../src/exports/reproducer.js";
import * as format from "../src/format.js";
import { withoutMetadata } from "../src/highlight.js";
import { build } from "../src/model.js";
import { resolve } from "../src/state.js";
import { hostile, mlp } from "./samples.mjs";

const model = build(mlp());

test("numbers have three digits and a unit", () => {
  assert.deepEqual([0, 7, 999, 1000, 3.14159e9, 99_960].map(format.count), ["0", "7", "999", "1 k", "3.14 G", "100 k"]);
  assert.deepEqual([512, 1536, 2 ** 29].map(format.bytes), ["512 B", "1.5 KiB", "512 MiB"]);
  assert.deepEqual([2, 0.0123, 12.3e-6, 5e-9, 0].map(format.seconds), ["2 s", "12.3 ms", "12.3 µs", "5 ns", "0 s"]);
  assert.deepEqual([null, undefined, NaN].map(format.flops), ["–", "–", "–"]);
  assert.deepEqual(
    [format.change(4, 5), format.change(4, 3), format.change(0, 1), format.change(2, 2)],
    ["+25 %", "−25 %", "new", "="],
  );
});

test("metadata is cut from lines of HLO and StableHLO, and nothing else", () => {
  assert.equal(
    withoutMetadata('%a = f32[2] add(%b, %c), metadata={op_name="f/}x" source_line=3}, backend_config={"k":1}'),
    '%a = f32[2] add(%b, %c), backend_config={"k":1}',
  );
  assert.equal(
    withoutMetadata('%0 = stablehlo.add %a, %b : tensor<2xf32> loc("x(y)")'),
    "%0 = stablehlo.add %a, %b : tensor<2xf32>",
  );
});

test("params and operands are read from the text of an equation", () => {
  const text =
    "c:f32[3,8] = dot_general[\n  dimension_numbers=(([1], [0]), ([], []))\n  preferred_element_type=float32\n] b a";
  assert.deepEqual(parts(text, "dot_general"), {
    params: [
      ["dimension_numbers", "(([1], [0]), ([], []))"],
      ["preferred_element_type", "float32"],
    ],
    operands: ["b", "a"],
  });
  assert.deepEqual(parts("d:f32[] = neg a", "neg"), { params: [], operands: ["a"] });
});

test("a kernel's text becomes a module with an entry", () => {
  const text = whole(
    "%f (p: f32[2]) -> f32[2] {\n  ROOT %p = f32[2] parameter(0)\n}\n\n%g (p: f32[2]) -> f32[2] {\n  ROOT %p = f32[2] parameter(0)\n}",
  );
  assert.match(text, /^HloModule kernel\n/);
  assert.match(text, /\nENTRY %g/);
  assert.equal(text.match(/ENTRY/g).length, 1);
  assert.equal(
    portable("%a = f32[4]{0:T(128)S(1)} fusion(%b, %c), kind=kLoop, calls=%f.1"),
    "%a = f32[4]{0} call(%b, %c), to_apply=%f.1",
  );
  assert.equal(whole("HloModule m\n\nENTRY %e {\n}"), "HloModule m\n\nENTRY %e {\n}");
});

test("texts in a script are quoted", () => {
  assert.equal(quoted('a"\n\u2028'), '"a\\"\\n\\u2028"');
  const evil = build(hostile());
  for (const pick of ["row:0", "row:1", "row:2", "kernel:0:0", "kernel:0:2"]) {
    const script = reproducer(evil, resolve(evil, pick));
    assert.ok(!/[\u2028\u2029]/.test(script));
  }
});

test("graphs are exported whole", () => {
  const text = dot(model, model.final),
    explorer = JSON.parse(modelExplorer(model, model.final));
  assert.equal(
    text.match(/ -> /g).length,
    model.rowsOf[model.final].reduce((sum, row) => sum + model.eq.operands[row].length, 0),
  );
  assert.equal(explorer.graphs[0].nodes.length, model.rowsOf[model.final].length);
  assert.equal(explorer.graphs[0].nodes[0].namespace, "model/layer0");
  const events = JSON.parse(perfetto(model)).traceEvents;
  assert.equal(events.filter((event) => event.ph === "M").length, 1 + model.targets.length);
  assert.ok(events.every((event) => event.ph === "M" || event.dur > 0));
});
