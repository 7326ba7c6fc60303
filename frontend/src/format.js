// Numbers as people read them: three digits and a unit.

const SI = ["", "k", "M", "G", "T", "P", "E"];
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const NONE = "–";

const missing = (x) => x === null || x === undefined || !Number.isFinite(x);

function digits(x) {
  const size = Math.abs(x);
  if (size >= 99.95 || x === 0) return x.toFixed(0);
  return x.toFixed(size >= 9.995 ? 1 : 2).replace(/\.?0+$/, "");
}

function scaled(x, base, units) {
  let step = 0;
  while (Math.abs(x) >= base * 0.9995 && step < units.length - 1) {
    x /= base;
    step++;
  }
  return [digits(x), units[step]];
}

/** 3140000 -> "3.14 M". */
export function count(x) {
  if (missing(x)) return NONE;
  const [number, unit] = scaled(x, 1000, SI);
  return unit ? `${number} ${unit}` : number;
}

/** 3140000 -> "3.14 MFLOP". */
export function flops(x) {
  if (missing(x)) return NONE;
  const [number, unit] = scaled(x, 1000, SI);
  return `${number} ${unit}FLOP`;
}

/** 536870912 -> "512 MiB". */
export function bytes(x) {
  return missing(x) ? NONE : scaled(x, 1024, BINARY).join(" ");
}

/** 0.0000123 -> "12.3 µs". */
export function seconds(x) {
  if (missing(x)) return NONE;
  if (x < 0) return `−${seconds(-x)}`;
  if (x === 0) return "0 s";
  const size = Math.abs(x);
  if (size >= 0.9995) return `${digits(x)} s`;
  if (size >= 0.9995e-3) return `${digits(x * 1e3)} ms`;
  if (size >= 0.9995e-6) return `${digits(x * 1e6)} µs`;
  return `${digits(x * 1e9)} ns`;
}

/** 0.1234 -> "12.3 %": always one digit after the point, so that a column lines up. */
export const percent = (x) => (missing(x) ? NONE : `${(x * 100).toFixed(1)} %`);

/** Any number of a table of values. */
export function number(x) {
  if (missing(x)) return NONE;
  const size = Math.abs(x);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return x.toExponential(2);
  return String(Number(x.toPrecision(4)));
}

/** 1 -> "1 kernel", 3 -> "3 kernels". */
export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

/** 0.05 -> "+5 %", the change from a to b; "new" where there was nothing. */
export function change(a, b) {
  if (missing(a) || missing(b)) return NONE;
  if (a === b) return "=";
  if (a === 0) return "new";
  const share = (b - a) / a;
  return `${share > 0 ? "+" : "−"}${digits(Math.abs(share) * 100)} %`;
}

export const MEASURES = {
  time: { title: "time", show: seconds },
  measured: { title: "measured", show: seconds },
  flops: { title: "FLOPs", show: flops },
  bytes: { title: "bytes", show: bytes },
  held: { title: "held", show: bytes },
};
