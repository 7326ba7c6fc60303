// Whole programs as files for tools made for large graphs: dot, Model Explorer, Perfetto.

/** The graph of a stage for Graphviz; named scopes are clusters. */
export function dot(model, stage) {
  const { eq } = model,
    rows = model.rowsOf[stage],
    text = (it) => JSON.stringify(String(it)).replace(/[\u2028\u2029]/g, " ");
  const lines = ["digraph program {", "  node [shape=box, fontname=monospace, fontsize=10];"];
  const scopes = new Map();
  for (const row of rows) scopes.set(eq.scope[row], [...(scopes.get(eq.scope[row]) ?? []), row]);
  let cluster = 0;
  for (const [scope, its] of scopes) {
    if (scope) lines.push(`  subgraph cluster_${cluster++} {`, `    label=${text(scope)};`);
    for (const row of its) lines.push(`  n${row} [label=${text(eq.text[row])}, tooltip=${text(model.where(row))}];`);
    if (scope) lines.push("  }");
  }
  for (const row of rows) for (const operand of eq.operands[row]) lines.push(`  n${operand} -> n${row};`);
  return [...lines, "}", ""].join("\n");
}

/** The graph of a stage for Model Explorer: named scopes are namespaces, costs are attributes. */
export function modelExplorer(model, stage) {
  const { eq } = model;
  const nodes = model.rowsOf[stage].map((row) => ({
    id: String(row),
    label: eq.primitive[row],
    namespace: eq.scope[row],
    attrs: ["text", "function", "variable", "direction", "flops", "bytes", "held", "label"]
      .flatMap((key) => (eq[key][row] === null ? [] : [{ key, value: String(eq[key][row]) }]))
      .concat({ key: "line", value: model.where(row) }),
    incomingEdges: eq.operands[row].map((operand, i) => ({
      sourceNodeId: String(operand),
      sourceNodeOutputId: "0",
      targetNodeInputId: String(i),
    })),
  }));
  return JSON.stringify({ label: model.report.name, graphs: [{ id: model.stages[stage].title, nodes }] });
}

/** The steps of compilation and the kernels of each target as events for Perfetto, in microseconds. */
export function perfetto(model) {
  const events = [
    ...track(
      model,
      1,
      "compilation",
      (model.report.program ?? [])
        .filter((step) => step.title !== "kernels")
        .map((step) => [step.title, step.seconds, { count: step.count }]),
    ),
  ];
  model.targets.forEach((target, t) =>
    events.push(
      ...track(
        model,
        2 + t,
        `kernels: ${target.name}`,
        (target.kernels ?? []).map((kernel) => [
          kernel.name,
          kernel.seconds,
          {
            time: kernel.time,
            flops: kernel.flops,
            bytes: kernel.bytes,
            lines: kernel.rows.map((row) => model.where(row)).join(" "),
          },
        ]),
      ),
    ),
  );
  return JSON.stringify({ traceEvents: events, displayTimeUnit: "ms" });
}

/** Steps one after another; xlamini/inspection/exports.py says why in whole nanoseconds and a tenth. */
function track(model, tid, name, steps) {
  let at = 0;
  return [
    { ph: "M", pid: 1, tid, name: "thread_name", args: { name } },
    ...steps
      .filter(([, seconds]) => seconds)
      .map(([title, seconds, args]) => {
        const length = Math.max(Math.round(seconds * 1e9), 1);
        const event = { ph: "X", pid: 1, tid, name: title, ts: (at + 0.1) / 1000, dur: length / 1000, args };
        at += length;
        return event;
      }),
  ];
}

/** Saves a text as a file of the reader. */
export function download(name, text, type) {
  const link = document.createElement("a"),
    url = URL.createObjectURL(new Blob([text], { type }));
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
