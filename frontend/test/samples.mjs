// Reports in the schema of xlamini.inspect, made up for tests: `node samples.mjs mlp|large|hostile|failed|bare|other` prints one.

import { pathToFileURL } from "node:url";

const SOURCE = `import xlamini as jax
import xlamini.numpy as jnp

RATE = 0.1  # learning rate


def layer(params, x):
    """One dense layer."""
    h = x @ params["w"]
    h = h + params["b"]
    return jnp.tanh(h)


def loss(params, batch):
    x = batch["x"]
    for i, p in enumerate(params):
        with jax.named_scope(f"model/layer{i}"):
            x = layer(p, x)
    return jnp.mean((x - batch["y"]) ** 2)


def step(params, batch):
    value, grads = jax.value_and_grad(loss)(params, batch)
    return value, jax.tree.map(lambda p, g: p - RATE * g, params, grads)`;

const WIDTH = 256;
const BATCH = 128;
const ACT = `f32[${BATCH},${WIDTH}]`;
const MAT = `f32[${WIDTH},${WIDTH}]`;
const VEC = `f32[${WIDTH}]`;
const SIZES = { [ACT]: BATCH * WIDTH * 4, [MAT]: WIDTH * WIDTH * 4, [VEC]: WIDTH * 4, "f32[]": 4 };
const DOT = 2 * BATCH * WIDTH * WIDTH;
const COLUMNS = [
  "stage",
  "label",
  "primitive",
  "text",
  "depth",
  "source",
  "line",
  "function",
  "variable",
  "scope",
  "direction",
  "parent",
  "rewrite",
  "rule",
  "runs",
  "flops",
  "bytes",
  "held",
  "operands",
];

// primitive, type, operands (offsets back), line, direction, flops, variable: one layer of each stage
const FORWARD = [
  ["dot_general", ACT, [1], 9, "forward", DOT, "h"],
  ["broadcast_in_dim", ACT, [], 10, "forward", 0, null],
  ["add", ACT, [2, 1], 10, "forward", BATCH * WIDTH, "h"],
  ["tanh", ACT, [1], 11, "forward", BATCH * WIDTH * 8, "x"],
];
const LINEAR = [
  ["mul", ACT, [1, 1], 11, "jvp", BATCH * WIDTH, null],
  ["sub", ACT, [1], 11, "jvp", BATCH * WIDTH, null],
];
const BACKWARD = [
  ["mul", ACT, [1], 11, "backward", BATCH * WIDTH, null],
  ["reduce_sum", VEC, [1], 10, "backward", BATCH * WIDTH, null],
  ["dot_general", MAT, [2], 9, "backward", DOT, null],
  ["transpose", MAT, [1], 9, "backward", 0, null],
  ["dot_general", ACT, [4], 9, "backward", DOT, null],
];
const UPDATE = [
  ["mul", MAT, [3], 24, "forward", WIDTH * WIDTH, null],
  ["sub", MAT, [1], 24, "forward", WIDTH * WIDTH, null],
  ["mul", VEC, [5], 24, "forward", WIDTH, null],
  ["sub", VEC, [1], 24, "forward", WIDTH, null],
];
const LOSS = [
  ["sub", ACT, [1], 19, "forward", BATCH * WIDTH, null],
  ["integer_pow", ACT, [1], 19, "forward", BATCH * WIDTH, null],
  ["reduce_sum", "f32[]", [1], 19, "forward", BATCH * WIDTH, null],
  ["div", "f32[]", [1], 19, "forward", 1, "value"],
];
const FUNCTIONS = { 9: "layer", 10: "layer", 11: "layer", 19: "loss", 24: "step.<lambda>" };

const letters = (n) => (n < 26 ? String.fromCharCode(97 + n) : letters(Math.floor(n / 26) - 1) + letters(n % 26));

class Table {
  constructor() {
    this.columns = Object.fromEntries(COLUMNS.map((name) => [name, []]));
    this.stages = [
      {
        kind: "source",
        title: "Python",
        target: null,
        of: null,
        rewrite: null,
        changed: true,
        seconds: null,
        count: 24,
        lines: [],
        rows: [],
      },
    ];
    this.n = 0;
  }

  stage(title, rewrite, seconds, blocks, before = null) {
    const stage = this.stages.length,
      first = this.n,
      lines = ["{ lambda ; a:f32[128,256] b:f32[256,256] c:f32[256]. let"],
      rows = [[]];
    for (const { specs, scope, key } of blocks)
      for (const [k, spec] of specs.entries()) {
        const text = this.equation(stage, first, spec, scope, `${key}.${k}`, before, rewrite);
        rows.push([this.n - 1]);
        lines.push(`    ${text}`);
      }
    lines.push(`  in (${letters(this.n - first)},) }`);
    rows.push([]);
    this.stages.push({
      kind: "jaxpr",
      title,
      target: null,
      of: stage > 1 ? stage - 1 : null,
      rewrite,
      changed: true,
      seconds,
      count: this.n - first,
      lines,
      rows,
    });
    return stage;
  }

  equation(stage, first, [primitive, type, back, line, direction, flops, variable], scope, key, before, rewrite) {
    const i = this.n - first,
      row = this.n++;
    const operands = back.map((k) => row - k).filter((r) => r >= first),
      names = operands.map((r) => letters(r - first + 3));
    const parent = before?.get(key) ?? null;
    const text = `${letters(i + 3)}:${type} = ${primitive}${primitive === "dot_general" ? "[…]" : ""} ${[...names, ...(names.length < 2 ? ["b"] : [])].join(" ")}`;
    const rule =
      direction === "forward"
        ? null
        : {
            name: `${primitive}.${direction === "jvp" ? "jvp" : "transpose"}`,
            file: `xlamini/primitives/${primitive}.py`,
            line: 40,
          };
    const bytes = SIZES[type] * 3;
    const held = direction === "jvp" && primitive === "sub" ? SIZES[type] : 0;
    const values = {
      stage,
      label: `${primitive}#e${i}`,
      primitive,
      text,
      depth: 0,
      source: 0,
      line,
      function: FUNCTIONS[line],
      variable,
      scope,
      direction,
      parent,
      rewrite: stage > 1 ? rewrite : null,
      rule,
      runs: 1,
      flops,
      bytes,
      held,
      operands,
    };
    for (const name of COLUMNS) this.columns[name].push(values[name]);
    this.keys ??= new Map();
    this.keys.set(stage, (this.keys.get(stage) ?? new Map()).set(key, row));
    return text;
  }
}

function program(layers) {
  const table = new Table(),
    ids = Array.from({ length: layers }, (_, i) => i);
  const blocks = (specs, name, order = ids) =>
    order.map((i) => ({ specs, scope: `model/layer${i}`, key: `${name}${i}` }));
  const loss = { specs: LOSS, scope: "", key: "loss" };
  table.stage("step: traced", null, 0.0042, [...blocks(FORWARD, "f"), loss]);
  table.stage(
    "loss: linearize",
    "linearize",
    0.0031,
    [...ids.flatMap((i) => [...blocks(FORWARD, "f", [i]), ...blocks(LINEAR, "l", [i])]), loss],
    table.keys.get(1),
  );
  const back = [...ids].reverse();
  const made = (before) => {
    // the backward block of a layer comes from its linear one
    const keys = new Map(before);
    for (const i of ids)
      BACKWARD.forEach((_, k) =>
        keys.set(`b${i}.${k}`, keys.get(`b${i}.${k}`) ?? before.get(k > 1 ? `f${i}.0` : `l${i}.1`)),
      );
    return keys;
  };
  const whole = () => [
    ...ids.flatMap((i) => [...blocks(FORWARD, "f", [i]), ...blocks(LINEAR, "l", [i])]),
    loss,
    ...blocks(BACKWARD, "b", back),
    ...ids.map((i) => ({ specs: UPDATE, scope: "", key: `u${i}` })),
  ];
  table.stage("loss: transpose", "transpose", 0.0049, whole(), made(table.keys.get(2)));
  table.final = table.stage(
    "step: common equations",
    "deduplicate",
    0.0012,
    whole().map((block) => (block.key === "loss" ? { ...block, specs: LOSS.slice(0, 4) } : block)),
    table.keys.get(3),
  );
  return table;
}

function compiled(table, t, name, options) {
  const { columns, stages, final } = table,
    rows = columns.stage.flatMap((stage, row) => (stage === final ? [row] : []));
  const lines = ["ENTRY %main {"],
    at = [[]];
  for (const row of rows) {
    lines.push(
      `  %${columns.primitive[row]}_e${row - rows[0]}.${t} = f32[128,256]{1,0} ${columns.primitive[row]}(%p.${row}), metadata={op_name="jit(step)/${columns.label[row]}" stack_frame_id=1}`,
    );
    at.push([row]);
  }
  lines.push("}");
  at.push([]);
  let of = 5;
  for (const [k, pass] of ["simplify-algebra", "flatten-call-graph", "layout-assignment", "fusion"].entries()) {
    const changed = k !== 1,
      cut = lines.filter((_, i) => k < 2 || i % 7 !== 3),
      cutRows = at.filter((_, i) => k < 2 || i % 7 !== 3);
    stages.push({
      kind: "pass",
      title: `${pass} (pass ${k * 7 + 1})`,
      target: t,
      of,
      rewrite: pass,
      changed,
      seconds: 0.0004 * (k + 1),
      count: cut.length,
      lines: changed ? cut.map((line) => (k === 2 ? line.replace("{1,0}", "{0,1}") : line)) : [],
      rows: changed ? cutRows : [],
    });
    if (changed) of = stages.length - 1;
  }
  stages.push({
    kind: "hlo",
    title: "optimized HLO",
    target: t,
    of,
    rewrite: null,
    changed: true,
    seconds: 0.31,
    count: lines.length,
    lines,
    rows: at,
  });
  const hlo = stages.length - 1;
  stages.push({
    kind: "assembly",
    title: options.assembly,
    target: t,
    of: hlo,
    rewrite: null,
    changed: true,
    seconds: null,
    count: 6,
    lines: [".visible .entry fusion(", "  .param .u64 p0", ")", "{", "  fma.rn.f32 %f1, %f2, %f3;", "}"],
    rows: [[], [], [], [], [rows[0]], []],
  });
  return { rows, hlo, assembly: hlo + 1 };
}

function kernelsOf(table, rows, speed, roof, time) {
  const { columns } = table,
    kernels = [];
  for (let i = 0; i < rows.length; i += 3) {
    const inside = rows.slice(i, i + 3),
      sum = (name) => inside.reduce((total, row) => total + columns[name][row], 0);
    const flops = sum("flops"),
      bytes = Math.round(sum("bytes") * 0.6),
      work = (row) => columns.flops[row] + columns.bytes[row],
      whole = inside.reduce((total, row) => total + work(row), 0),
      dot = inside.some((row) => columns.primitive[row] === "dot_general");
    kernels.push({
      name: `${dot ? "gemm_fusion" : "fusion"}.${i / 3}`,
      kind: dot ? "dot" : "fusion",
      opcode: "fusion",
      type: ACT,
      runs: 1,
      flops,
      bytes,
      seconds: (Math.max(flops / roof.flops, bytes / roof.bandwidth) * (1.3 + (i % 5) / 3)) / speed,
      time,
      rows: inside,
      shares: inside.map((row) => work(row) / whole),
      inserted: false,
      line: i + 1,
      hlo: `%fused (p: ${ACT}) -> ${ACT} {\n  %p = ${ACT}{1,0} parameter(0)\n  ROOT %t = ${ACT}{1,0} tanh(%p)\n}`,
    });
  }
  kernels.push({
    name: "copy.1",
    kind: "copy",
    opcode: "copy",
    type: MAT,
    runs: 1,
    flops: 0,
    bytes: 2 * SIZES[MAT],
    seconds: (2 * SIZES[MAT]) / roof.bandwidth,
    time,
    rows: [],
    shares: [],
    inserted: true,
    line: 2,
    hlo: `%c = ${MAT}{0,1} copy(%p)`,
  });
  return kernels;
}

function target(table, t, name, options) {
  const { rows, hlo, assembly } = compiled(table, t, name, options),
    { roof, time } = options;
  const kernels = kernelsOf(table, rows, 1, roof, time),
    n = kernels.length;
  const sum = (key) => kernels.reduce((total, kernel) => total + (kernel[key] ?? 0), 0);
  const boundaries = kernels.slice(1, 40).map((kernel, k) => ({
    value: ACT,
    bytes: SIZES[ACT],
    producer: k,
    consumers: [k + 1, ...(k % 4 ? [] : [Math.min(n - 1, k + 3)])],
    reason: k % 3 ? "the fusion would read the operand twice" : null,
    gain: k % 3 ? 1e-6 * k : null,
  }));
  return {
    name,
    platform: options.platform,
    device: options.device,
    devices: options.devices ?? 1,
    error: null,
    unavailable: options.unavailable ?? {},
    seconds: { lower: 0.021, compile: 0.42 },
    cost: { flops: sum("flops"), bytes: sum("bytes"), source: "xla" },
    memory: {
      peak: 44_000_000,
      arguments: 4_000_000,
      outputs: 4_000_000,
      temporaries: 36_000_000,
      code: 100_000,
      capacity: options.capacity,
    },
    prediction: { seconds: sum("seconds"), source: `${time}, summed over kernels` },
    roof,
    kernels,
    boundaries: options.unavailable?.boundaries ? [] : boundaries,
    coverage: { instructions: rows.length + 3, with_id: rows.length, inserted: ["copy.1"] },
    moments: kernels.map((_, k) => ({
      kernel: k,
      bytes: 4_000_000 + 400_000 * Math.round(40 * Math.sin((Math.PI * k) / n)),
    })),
    buffers: kernels.slice(0, 60).map((kernel, k) => ({
      name: kernel.name,
      bytes: SIZES[ACT],
      first: k,
      last: Math.min(n - 1, k + 9),
      row: kernel.rows[0] ?? null,
    })),
    collectives:
      options.devices > 1
        ? [
            {
              kind: "all-reduce",
              bytes: SIZES[MAT],
              times: 2,
              group: 4,
              row: rows[8],
              op: "jit(step)/transpose",
              line: "train.py:9",
              asked: false,
            },
            {
              kind: "all-gather",
              bytes: SIZES[ACT],
              times: 1,
              group: 2,
              row: rows[0],
              op: "jit(step)/dot",
              line: "train.py:9",
              asked: true,
            },
          ]
        : [],
    hlo,
    assembly,
  };
}

function memoryOf(table) {
  const { columns, final } = table,
    rows = columns.stage.flatMap((stage, row) => (stage === final ? [row] : [])),
    n = rows.length;
  const values = rows.map((row, i) => ({
    type: ACT,
    bytes: SIZES[ACT],
    made: row,
    last: rows[columns.held[row] ? n - 1 - i : Math.min(n - 1, i + 3)],
    first: i,
    until: columns.held[row] ? Math.max(i, n - 1 - i) : Math.min(n - 1, i + 3),
    variable: columns.variable[row],
    kept_for_backward: columns.held[row] > 0,
  }));
  const moments = rows.map((row) => ({ row, bytes: 4_000_000 }));
  for (const value of values)
    for (let i = value.first; i <= Math.min(value.until, value.first + 3000); i++) moments[i].bytes += value.bytes;
  const at = moments.reduce((best, moment) => (moment.bytes > best.bytes ? moment : best));
  return {
    peak: at.bytes,
    arguments: 4_000_000,
    results: 4_000_000,
    temporaries: at.bytes - 4_000_000,
    at: at.row,
    moments,
    values,
    groups: [
      { scope: "model/layer0", saves: 3 * SIZES[ACT], adds: DOT },
      { scope: "model/layer1", saves: 2 * SIZES[ACT], adds: DOT * 1.1 },
    ],
    left_out: ["Scratch space of kernels is not counted."],
  };
}

const MESH = {
  axes: [
    { name: "x", size: 2, type: "Explicit" },
    { name: "y", size: 4, type: "Auto" },
  ],
  devices: [
    [0, 1, 2, 3],
    [4, 5, 6, 7],
  ],
  values: [
    {
      row: null,
      name: "argument params['w']",
      type: "f32[8,16]",
      spec: ["x", "y"],
      shards: Array.from({ length: 8 }, (_, d) => ({
        device: d,
        index: [
          [(d >> 2) * 4, (d >> 2) * 4 + 4],
          [(d % 4) * 4, (d % 4) * 4 + 4],
        ],
      })),
    },
    {
      row: null,
      name: "argument batch",
      type: "f32[8,16]",
      spec: ["x", null],
      shards: Array.from({ length: 8 }, (_, d) => ({
        device: d,
        index: [
          [(d >> 2) * 4, (d >> 2) * 4 + 4],
          [0, 16],
        ],
      })),
    },
  ],
};

/** A training step of `layers` dense layers on three targets, and a fourth whose compiler is missing. */
export function mlp(layers = 4, name = "step") {
  const table = program(layers),
    { columns, stages, final } = table;
  const rows = columns.stage.flatMap((stage, row) => (stage === final ? [row] : []));
  stages.push({
    kind: "stablehlo",
    title: "StableHLO",
    target: null,
    of: final,
    rewrite: "lower",
    changed: true,
    seconds: 0.021,
    count: rows.length,
    lines: [
      "module @jit_step {",
      ...rows.map(
        (row, i) =>
          `    %${i} = stablehlo.${columns.primitive[row]} %arg0 : tensor<128x256xf32> loc("${columns.label[row]}")`,
      ),
      "}",
    ],
    rows: [[], ...rows.map((row) => [row]), []],
  });
  const targets = [
    target(table, 0, "here", {
      platform: "cpu",
      device: "AMD EPYC",
      assembly: "LLVM IR",
      capacity: 24e9,
      roof: { flops: 4e11, bandwidth: 3e10, source: "measured on this machine" },
      time: "measured",
      unavailable: { boundaries: "XLA's CPU compiler gives no reasons for its fusions" },
    }),
    target(table, 1, "tpu:v5e:2x2", {
      platform: "tpu",
      device: "TPU v5 lite",
      devices: 4,
      assembly: "LLO",
      capacity: 17e9,
      roof: { flops: 1.97e14, bandwidth: 8.1e11, source: "data sheet" },
      time: "predicted by XLA",
      unavailable: { boundaries: "the TPU compiler does not say why it does not fuse" },
    }),
    target(table, 2, "gpu:h200", {
      platform: "cuda",
      device: "NVIDIA H200",
      assembly: "PTX",
      capacity: 141e9,
      roof: { flops: 6.7e13, bandwidth: 4.8e12, source: "data sheet" },
      time: "lower bound",
    }),
    {
      name: "tpu:v9:2x2",
      platform: "tpu",
      device: null,
      devices: 0,
      error: "no topology is named v9: v5e, v5p and v6e are",
      unavailable: {},
      seconds: {},
      cost: null,
      memory: null,
      prediction: null,
      roof: null,
      kernels: [],
      boundaries: [],
      coverage: {},
      moments: [],
      buffers: [],
      collectives: [],
      hlo: null,
      assembly: null,
    },
  ];
  const total = (key, some = rows) => some.reduce((sum, row) => sum + columns[key][row], 0);
  const directions = Object.fromEntries(
    ["forward", "jvp", "backward"].map((name) => [
      name,
      {
        flops: total(
          "flops",
          rows.filter((row) => columns.direction[row] === name),
        ),
        bytes: total(
          "bytes",
          rows.filter((row) => columns.direction[row] === name),
        ),
      },
    ]),
  );
  return {
    schema: 1,
    made_with: { xlamini: "0.1.0", jaxlib: "0.10.2", python: "3.11.7" },
    name,
    failure: null,
    arguments: [
      { name: "params[0]['w']", type: MAT, bytes: SIZES[MAT], donated: true, sharding: "P('x',)" },
      { name: "batch['x']", type: ACT, bytes: SIZES[ACT], donated: false, sharding: null },
    ],
    results: [{ name: "[0]", type: "f32[]", bytes: 4, sharding: null }],
    sources: [
      { file: "/srv/project/train.py", lines: SOURCE.split("\n"), library: false },
      { file: "/usr/lib/python3/site-packages/optimizer.py", lines: null, library: true },
      {
        file: "xlamini/primitives/mul.py",
        lines: Array.from({ length: 60 }, (_, i) =>
          i === 39 ? "    def jvp(self, eqn, primals, tangents):" : `    # line ${i + 1}`,
        ),
        library: true,
      },
    ],
    equations: columns,
    stages,
    final,
    program: [
      { title: "Python", count: 24, seconds: null, stage: null },
      ...[1, 2, 3, 4].map((i) => ({
        title: stages[i].rewrite ?? "jaxpr",
        count: stages[i].count,
        seconds: stages[i].seconds,
        stage: i,
      })),
      { title: "StableHLO", count: rows.length, seconds: 0.021, stage: 5 },
      { title: "XLA", count: targets[0].coverage.instructions, seconds: 0.42, stage: targets[0].hlo },
      { title: "kernels", count: targets[0].kernels.length, seconds: targets[0].prediction.seconds, stage: null },
    ],
    totals: {
      flops: total("flops"),
      bytes: total("bytes"),
      intensity: total("flops") / total("bytes"),
      by_direction: directions,
      left_out: ["Trips of `while` loops are counted once."],
    },
    targets,
    memory: memoryOf(table),
    mesh: MESH,
    compilations: [
      {
        function: name,
        site: "train.py:40",
        cause: { kind: "first", text: "first call", edit: "" },
        seconds: { trace: 0.012, lower: 0.02, compile: 0.4 },
      },
      ...Array.from({ length: 3 }, (_, i) => ({
        function: name,
        site: "train.py:52",
        cause: {
          kind: "shape",
          text: `batch['x'] was f32[128,256], is f32[${96 - i},256]`,
          edit: "pad the batch to 128",
        },
        seconds: { trace: 0.011, lower: 0.02, compile: 0.39 },
      })),
    ],
    findings: [
      {
        kind: "intermediate",
        severity: "warning",
        text: `A value of 128 KiB is written by layer and read once, in the backward pass.`,
        edit: "xlamini.checkpoint around layer would recompute it.",
        row: rows[3],
        source: 0,
        line: 11,
        screen: "memory",
        ratio: 0.4,
      },
      {
        kind: "copies",
        severity: "info",
        text: "XLA put in one copy of f32[256,256].",
        edit: "",
        row: null,
        source: 0,
        line: 9,
        screen: "kernels",
        ratio: null,
      },
    ],
    values: rows.map((row, i) => ({
      row,
      min: -1.2 - i / 100,
      max: 3.4e-7 * i,
      mean: 0.01 * i,
      nan: i === 17 ? 3 : 0,
      inf: 0,
      zeros: (i % 10) / 10,
      ulps: i % 7 ? i / 3 : null,
      iteration: [],
    })),
  };
}

const EVIL = [
  "</script><script>globalThis.pwned = 1</script>",
  '"><img src=x onerror="globalThis.pwned = 1">',
  "\u2028\u2029 $& $` {{}} @@REPORT@@ @@SCRIPT@@",
  "<!-- --> javascript:alert(1) &lt;b&gt;",
  "__proto__",
];

/** A report in which every text from the program is hostile. */
export function hostile() {
  const report = mlp(2, EVIL[0]),
    evil = (i) => EVIL[i % EVIL.length];
  const { equations } = report;
  for (const name of ["text", "label", "primitive", "function", "variable", "scope", "direction", "rewrite"])
    equations[name] = equations[name].map((_, i) => evil(i));
  equations.rule = equations.rule.map((_, i) => ({ name: evil(i), file: evil(i + 1), line: 1 }));
  report.sources.forEach((source, i) =>
    Object.assign(source, {
      file: `/srv/${evil(i)}`,
      lines: EVIL.flatMap((text) => [text, text.split("").reverse().join("")]),
    }),
  );
  report.stages.forEach((stage, i) =>
    Object.assign(stage, { title: evil(i), lines: stage.lines.map((_, k) => evil(k)) }),
  );
  for (const target of report.targets) {
    Object.assign(target, { name: evil(1), device: evil(0) });
    target.kernels.forEach((kernel, i) =>
      Object.assign(kernel, { name: evil(i), kind: evil(i + 1), type: evil(i + 2), hlo: evil(i), time: evil(3) }),
    );
    target.boundaries.forEach((boundary, i) => Object.assign(boundary, { value: evil(i), reason: evil(i + 1) }));
    target.buffers.forEach((buffer, i) => Object.assign(buffer, { name: evil(i) }));
    target.collectives.forEach((it) => Object.assign(it, { kind: evil(0), op: evil(1), line: evil(2) }));
    target.unavailable = Object.fromEntries(Object.keys(target.unavailable).map((name) => [name, evil(1)]));
  }
  report.findings.forEach((it) => Object.assign(it, { text: evil(0), edit: evil(1), severity: "warning" }));
  report.compilations.forEach((it) =>
    Object.assign(it, { function: evil(0), site: evil(1), cause: { kind: evil(2), text: evil(0), edit: evil(1) } }),
  );
  report.arguments.forEach((it) => Object.assign(it, { name: evil(0), type: evil(1), sharding: evil(2) }));
  report.memory.values.forEach((it, i) => Object.assign(it, { type: evil(i), variable: evil(i + 1) }));
  report.memory.groups.forEach((it, i) => Object.assign(it, { scope: evil(i) }));
  report.mesh.values.forEach((it, i) => Object.assign(it, { name: evil(i), spec: [evil(0), evil(1)] }));
  report.mesh.axes.forEach((it, i) => Object.assign(it, { name: evil(i) }));
  report.program.forEach((it, i) => Object.assign(it, { title: evil(i) }));
  report.totals.left_out = EVIL;
  return report;
}

/** A program that did not compile: the stages up to the failure. */
export function failed() {
  const report = mlp(2);
  Object.assign(report, {
    failure: { stage: "lower", error: "TypeError: no lowering rule for primitive `mystery`" },
    targets: [],
    memory: null,
    mesh: null,
    findings: [],
    stages: report.stages.slice(0, 5),
  });
  report.program = report.program.slice(0, 5);
  return report;
}

/** A report with nothing optional: one equation, no source text, no target. */
export function bare() {
  const columns = Object.fromEntries(COLUMNS.map((name) => [name, []]));
  Object.assign(columns, {
    stage: [0],
    label: ["neg#e0"],
    primitive: ["neg"],
    text: ["b:f32[3] = neg a"],
    depth: [0],
    source: [null],
    line: [null],
    function: [null],
    variable: [null],
    scope: [""],
    direction: ["forward"],
    parent: [null],
    rewrite: [null],
    rule: [null],
    runs: [1],
    flops: [3],
    bytes: [24],
    held: [0],
    operands: [[]],
  });
  return {
    schema: 1,
    made_with: {},
    name: "f",
    failure: null,
    arguments: [],
    results: [],
    sources: [],
    equations: columns,
    stages: [
      {
        kind: "jaxpr",
        title: "f: traced",
        target: null,
        of: null,
        rewrite: null,
        changed: true,
        seconds: null,
        count: 1,
        lines: ["{ lambda ; a:f32[3]. let", "    b:f32[3] = neg a", "  in (b,) }"],
        rows: [[], [0], []],
      },
    ],
    final: 0,
    program: [],
    totals: { flops: 3, bytes: 24, intensity: 0.125, by_direction: {}, left_out: [] },
    targets: [],
    memory: null,
    mesh: null,
    compilations: [],
    findings: [],
    values: null,
  };
}

export const SAMPLES = { mlp: () => mlp(), other: () => mlp(5), large: () => mlp(1334), hostile, failed, bare };

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  process.stdout.write(JSON.stringify(SAMPLES[process.argv[2] ?? "mlp"]()));
