// Contents of profile pages, made up for tests: `node profiles.mjs small|large|hostile|bare` prints one.

import { pathToFileURL } from "node:url";

const FILE = "/home/me/train.py";
const TEXTS = ["import jax", "", "def layer(p, x):", "    return jax.numpy.tanh(x @ p)", "", "loss = step(p, x)"];

/** A profile with `runs` runs of `kernels` kernels on `devices` devices, of which each second begins before the end of the first. */
export function profile({ runs = 60, kernels = 6, devices = 2, name = "train.py", texts = TEXTS } = {}) {
  const all = Array.from({ length: kernels }, (_, k) => k),
    each = Array.from({ length: runs }, (_, i) => i);
  const lengths = each.map((i) => 1000 + ((i * 7919) % 5000));
  const took = (k) => each.reduce((sum, i) => sum + (i % kernels === k ? lengths[i] : 0), 0) * 1e-9;
  const seconds = all.map(took),
    whole = seconds.reduce((a, b) => a + b, 0);
  const odd = all.reduce((sum, k) => sum + (k % 2 ? seconds[k] : 0), 0);
  return {
    schema: 1,
    kind: "profile",
    made_with: { xlamini: "0.1.0", jaxlib: "0.10.2", python: "3.12.1" },
    name,
    totals: { wall: whole * 4, kernels: whole, covered: whole * 0.9, span: whole * 2 },
    shares: [
      { of: "host", name: "compiling", seconds: whole * 2 },
      { of: "host", name: "Python and calls", seconds: whole * 2 },
      { of: "device", name: "computing", seconds: whole * 0.9 },
      { of: "device", name: "no kernel ran", seconds: whole * 3.1 },
    ],
    notes: [],
    findings: [{ share: 0.31, text: "train.py:6 waits for the device 100 times; keep the losses", row: 1 }],
    compilations: [
      {
        function: "step",
        place: `${FILE}:3`,
        count: 2,
        seconds: whole * 2,
        cause: "x is f32[3], before f32[2]",
        edit: "",
      },
    ],
    files: [{ path: FILE, numbers: texts.map((_, i) => i + 1), texts }],
    lines: {
      name: [`${FILE}:4`, `${FILE}:6`, "no line known"],
      file: [0, 0, null],
      line: [4, 6, null],
      function: ["layer", "<module>", ""],
      seconds: [whole - odd, 0, odd],
      calls: [10, 0, 10],
      waited: [0, whole, 0],
      waits: [0, 100, 0],
      compiled: [0, 0, 0],
      python: [0, whole / 8, 0],
      moved: [0, whole / 16, 0],
      bytes: [0, 2 ** 20, 0],
    },
    programs: [
      {
        name: "jit_step",
        calls: 10,
        seconds: whole,
        place: `${FILE}:3`,
        command: "python -m xlamini inspect x",
        snippet: "f",
        page: "page_files/step.html",
        unwritten: "",
      },
    ],
    kernels: {
      name: all.map((k) => `fusion.${k}`),
      program: all.map(() => 0),
      row: all.map((k) => (k % 2 ? 2 : 0)),
      labels: all.map((k) => (k % 2 ? "" : `tanh#e${k}, add#e${k + 1}`)),
      inserted: all.map((k) => k === 3),
      seconds,
      runs: all.map((k) => each.filter((i) => i % kernels === k).length),
    },
    timeline: {
      shown: `all ${runs} runs of kernels, in which jit_step was called 10 times`,
      seconds: (runs * 2000 + 6000) * 1e-9,
      focus: [runs * 1e-6, runs * 1.2e-6],
      devices: Array.from({ length: devices }, (_, d) => `device ${d}`),
      kernel: each.map((i) => i % kernels),
      device: each.map((i) => i % devices),
      gap: each.map((i) => (i ? 2000 : 0)),
      duration: lengths,
    },
    host: {
      lanes: ["host", "Python", "transfers"],
      names: ["call of step", "wait", "Python", "float32[512,512] to the device"],
      lane: [0, 1, 2, 0, 0],
      name: [0, 2, 3, 1, 0],
      row: [null, 1, 1, null, null],
      bytes: [0, 0, 2 ** 20, 0, 0],
      gap: [0, 5000, 3000, 1000, 20000],
      duration: [5000, 3500, 1000, 8000, 5000],
    },
  };
}

const HOSTILE = ["</script><script>globalThis.pwned = 1</script>", '"><img src=x onerror=globalThis.pwned=1>'];

const hostile = () => {
  const it = profile({ name: HOSTILE[0], texts: [...HOSTILE, ...TEXTS.slice(2)] });
  it.kernels.name[0] = HOSTILE[1];
  it.findings[0].text = HOSTILE[1];
  it.timeline.devices[0] = HOSTILE[0];
  it.host.lanes[1] = HOSTILE[0];
  it.host.names[2] = HOSTILE[1];
  it.programs[0].page = "javascript:globalThis.pwned=1";
  it.programs[0].unwritten = HOSTILE[1];
  return it;
};

/** A recording without a run. */
const bare = () => {
  const it = profile({ runs: 0, kernels: 0, devices: 0 });
  for (const part of ["lines", "host"]) for (const column of Object.keys(it[part])) it[part][column] = [];
  return { ...it, totals: { ...it.totals, wall: null }, findings: [], files: [], programs: [] };
};

export const PROFILES = {
  small: () => profile(),
  large: () => profile({ runs: 10_000, kernels: 10_000, devices: 8 }),
  hostile,
  bare,
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  process.stdout.write(JSON.stringify(PROFILES[process.argv[2] ?? "small"]()));
