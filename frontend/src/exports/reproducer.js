// "Copy reproducer": a Python script that runs one equation or one kernel alone, on random inputs.

import { copied } from "../clipboard.js";

const TYPED = /\b([a-z_][a-z0-9_]*):([a-z]\w*\[[^\]]*\])/g;
const NAME = /^[a-z]+$/;
const LITERAL = /^(-?[\d.]+(e[+-]?\d+)?|True|False|None|"[^"\\\n]*"|'[^'\\\n]*'|[\d\s,()[\]-]+)$/;
const DTYPES = {
  f16: "float16",
  bf16: "bfloat16",
  f32: "float32",
  f64: "float64",
  i8: "int8",
  i16: "int16",
  i32: "int32",
  i64: "int64",
  s8: "int8",
  s16: "int16",
  s32: "int32",
  s64: "int64",
  u8: "uint8",
  u16: "uint16",
  u32: "uint32",
  u64: "uint64",
  bool: "bool",
  pred: "bool",
  c64: "complex64",
  c128: "complex128",
};
const NAMES = new Set(Object.values(DTYPES));

/** Copies the script of what is chosen, and says on the button how it went. */
export const copyReproducer = (app, choice, button) => copied(reproducer(app.model, choice), button);

/** The script for a choice: the kernel, or the first of its equations. */
export function reproducer(model, choice) {
  if (choice.kind === "kernel") return ofKernel(choice.kernel, model.report);
  return choice.rows.length ? ofRow(model, choice.rows[0]) : "# No equation is on this line.\n";
}

const versions = (report) =>
  Object.entries(report.made_with ?? {})
    .map(([name, version]) => `${oneLine(name)} ${oneLine(version)}`)
    .join(", ");
const oneLine = (text) => String(text ?? "").replace(/[\r\n\u2028\u2029]+/g, " ");
const comment = (text) =>
  String(text)
    .split(/[\r\n\u2028\u2029]+/)
    .map((line) => `# ${line}`)
    .join("\n");

/** A Python literal of any text. */
export const quoted = (text) =>
  JSON.stringify(String(text)).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");

function array(name, type) {
  const [, short, shape] = /^(\w+)\[([^\]]*)\]/.exec(type) ?? [null, "f32", ""];
  const dims = shape
    .split(",")
    .map((dim) => Number.parseInt(dim, 10))
    .filter((dim) => dim >= 0);
  const size = `(${dims.join(", ")}${dims.length === 1 ? "," : ""})`,
    dtype = DTYPES[short] ?? "float32";
  const made = /^(u?int|bool)/.test(dtype) ? `random.integers(0, 2, ${size})` : `random.standard_normal(${size})`;
  return `${name} = numpy.asarray(${made}).astype(${dtype === "bfloat16" ? "ml_dtypes.bfloat16" : quoted(dtype)})`;
}

function ofRow(model, row) {
  const { eq, stages } = model,
    stage = stages[eq.stage[row]];
  const lines = (model.linesOf(eq.stage[row]).get(row) ?? []).map((i) => stage.lines[i]);
  const text = lines.length ? lines.join("\n") : eq.text[row],
    types = new Map();
  for (const line of stage.lines) for (const [, name, type] of line.matchAll(TYPED)) types.set(name, type);
  const { params, operands } = parts(text, eq.primitive[row]);
  params.push(...unprinted(eq.primitive[row], text, new Set(params.map(([name]) => name))));
  const inputs = [...new Set(operands.filter((it) => NAME.test(it)))];
  const safe = (name) => `${name}_`; // `in` and `is` are names of variables too
  const call = [
    ...operands.map((it) => (NAME.test(it) ? safe(it) : literal(it))),
    ...params.map(([name, value]) => `\n    ${name}=${python(value)}`),
  ];
  return [
    comment(`One equation of ${model.report.name}, alone, on random inputs (${versions(model.report)}).`),
    comment(text),
    comment(`${model.where(row)} ${eq.scope[row]}`.trim()),
    "import ml_dtypes  # noqa: F401\nimport numpy\nfrom xlamini.commands import rules\n",
    `primitive = next(row.primitive for row in rules.rows() if row.primitive.name == ${quoted(eq.primitive[row])})`,
    "random = numpy.random.default_rng(0)",
    ...inputs.map((it) => array(safe(it), types.get(it) ?? "f32[]")),
    "",
    `print(primitive.bind(${call.join(", ")}))`,
    "",
  ].join("\n");
}

/** Params that a jaxpr leaves out where the type of the result tells them. */
function unprinted(primitive, text, printed) {
  const shape = /:\w+\[([\d,]*)\]/.exec(text)?.[1] ?? "";
  const all =
    {
      broadcast_in_dim: [
        ["shape", `[${shape}]`],
        ["broadcast_dimensions", "()"],
      ],
      dot_general: [["precision", "None"]],
    }[primitive] ?? [];
  return all.filter(([name]) => !printed.has(name));
}

/** The params [[name, text]] and operands of the text of an equation. */
export function parts(text, primitive) {
  const at = text.indexOf(`= ${primitive}`);
  let rest = at < 0 ? "" : text.slice(at + 2 + primitive.length),
    inside = "";
  if (rest.startsWith("[")) {
    let depth = 0,
      end = 0;
    for (; end < rest.length; end++) {
      depth += { "[": 1, "]": -1 }[rest[end]] ?? 0;
      if (depth === 0) break;
    }
    inside = rest.slice(1, end);
    rest = rest.slice(end + 1);
  }
  const params = inside
    .split(/(?:^|[\s])(?=[A-Za-z_]\w*=)/)
    .map((it) => it.trim())
    .filter((it) => it.includes("="))
    .map((it) => it.split(/=(.*)/s).slice(0, 2));
  return { params, operands: rest.trim().split(/\s+/).filter(Boolean) };
}

/** A literal operand such as "1.0:f32[]" as Python; what is none is left to the reader, so that no text becomes code. */
function literal(text) {
  const value = text.replace(/:.*$/s, "");
  return LITERAL.test(value) ? value : "...";
}

/** The value of a param as Python: literals and dtypes; anything else is left to the reader. */
function python(text) {
  const value = text.trim();
  if (NAMES.has(value)) return `numpy.dtype(${quoted(value)})`;
  if (LITERAL.test(value))
    return value.replace(/\[([^[\]]*)\]/g, (_, inside) => `(${inside}${inside && !inside.includes(",") ? "," : ""})`);
  return `...  # ${oneLine(value)}\n`;
}

function ofKernel(kernel, report) {
  const text = portable(whole(kernel.hlo ?? ""));
  const parameters = [...entry(text).matchAll(/= (\S+?)(?:\{[^}]*\})? parameter\((\d+)\)/g)]
    .sort((a, b) => a[2] - b[2])
    .map(([, type]) => type);
  return [
    comment(`The kernel ${kernel.name} of ${report.name}, alone, on random inputs (${versions(report)}).`),
    "import ml_dtypes  # noqa: F401\nimport numpy\nimport xlamini\nfrom jaxlib import _hlo, _jax\n",
    `HLO = ${pythonText(text)}\n`,
    "random = numpy.random.default_rng(0)",
    ...parameters.map((type, i) => array(`x${i}`, type)),
    "",
    "program = _jax.mlir.hlo_to_stablehlo(_hlo.hlo_module_from_text(HLO).as_serialized_hlo_module_proto())",
    "device = xlamini.devices()[0]",
    "kernel = device.client.compile_and_load(program, _jax.DeviceList((device,)), _jax.CompileOptions())",
    `results = kernel.execute_sharded([${parameters.map((_, i) => `xlamini.numpy.asarray(x${i})`).join(", ")}])`,
    "for (result,) in results.disassemble_into_single_device_arrays():",
    "    print(numpy.asarray(result))",
    "",
  ].join("\n");
}

/** A module of the text of a kernel: the last computation becomes the entry if none is. */
export function whole(text) {
  let out = /^HloModule\b/m.test(text) ? text : `HloModule kernel\n\n${text}`;
  if (/^ENTRY\b/m.test(out)) return out;
  const heads = [...out.matchAll(/^(?=%?[\w.-]+ (?:\(.*\) -> .*)?\{\s*$)/gm)];
  if (heads.length) return `${out.slice(0, heads.at(-1).index)}ENTRY ${out.slice(heads.at(-1).index)}`;
  return out;
}

/**
 * HLO that any device takes: fusions, which only their own backend can read, become calls, which XLA fuses again; tiled layouts become
 * plain; bitcasts between plain layouts become reshapes.
 */
export function portable(text) {
  const calls = text.replace(/ fusion\(([^)]*)\), kind=k\w+, calls=(%?[\w.-]+)/g, " call($1), to_apply=$2");
  const plain = calls.replace(/\{([\d,]*):[^}]*\}/g, "{$1}").replaceAll("[]{}", "[]");
  const descending = (layout) => layout.split(",").every((x, i, all) => Number(x) === all.length - 1 - i);
  return plain.replace(/(\{([\d,]+)\}) bitcast\(/g, (all, layout, order) =>
    descending(order) ? `${layout} reshape(` : all,
  );
}

const entry = (text) => text.slice(Math.max(0, text.search(/^ENTRY\b/m)));
const pythonText = (text) =>
  /"""|\\|[^\x20-\x7e\n]/.test(text) ? quoted(text) : `"""${text.endsWith('"') ? `${text}\n` : text}"""`;
