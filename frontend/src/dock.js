// The dock: what is chosen, in words and numbers, and its thread from the user's line through every stage to the kernels.

import { copied } from "./clipboard.js";
import { h, put } from "./dom.js";
import * as format from "./format.js";
import { base } from "./model.js";
import { pickKernel, pickLine, pickRow } from "./state.js";
import { copyReproducer } from "./exports/reproducer.js";

const FEW = 3;

/** The foot of the page. */
export class Dock {
  constructor(app) {
    this.app = app;
    this.element = h("footer", { class: "dock", "aria-label": "Chosen", "aria-live": "polite" });
  }

  show() {
    const { choice } = this.app;
    if (!choice)
      return put(
        this.element,
        h(
          "p",
          { class: "dock-empty" },
          "You have not chosen anything. Click a line, an equation or a kernel, or press ",
          h("kbd", null, "j"),
          ".",
        ),
      );
    put(
      this.element,
      h("div", { class: "dock-what" }, this.what(choice), this.actions(choice)),
      h("div", { class: "facts" }, this.facts(choice)),
      this.thread(choice),
    );
  }

  what(choice) {
    const { model } = this.app;
    const title = {
      row: () => model.eq.text[choice.row],
      line: () => model.sources[choice.source]?.lines?.[choice.line - 1]?.trim() ?? `line ${choice.line}`,
      kernel: () => `${choice.kernel.name} : ${choice.kernel.type ?? ""}`,
      scope: () => choice.scope,
    }[choice.kind]();
    return h("code", { class: "dock-title", title }, title);
  }

  facts(choice) {
    const { model } = this.app,
      { eq } = model;
    if (choice.kind === "row") return [...rowFacts(this.app, choice.row), this.rule(choice.row)];
    if (choice.kind === "kernel") return kernelFacts(choice.kernel);
    const rows = choice.rows.filter((row) => eq.stage[row] === model.final);
    return [
      fact("equations", format.count(rows.length)),
      ...byDirection(eq, rows),
      fact("held", format.bytes(sum(eq.held, rows))),
      this.heldUntil(rows),
    ];
  }

  heldUntil(rows) {
    const { model } = this.app,
      made = new Set(rows);
    const kept = (model.report.memory?.values ?? []).filter(
      (value) => value.kept_for_backward && made.has(value.made) && value.last !== null,
    );
    if (!kept.length) return null;
    const last = kept.reduce((a, b) => (a.until > b.until ? a : b)).last;
    return fact("until", model.where(last) || model.eq.label[last]);
  }

  rule(row) {
    const { model } = this.app,
      rule = model.eq.rule[row];
    if (!rule) return null;
    const source = model.sources.findIndex(
      (it) => it.lines && (it.file === rule.file || it.file.endsWith(`/${rule.file}`)),
    );
    const text = `${base(rule.file)}:${rule.line}`;
    const go = () => this.app.set({ screen: "source", source, pick: pickLine(source, rule.line) });
    return h(
      "span",
      { class: "fact" },
      h("span", { class: "fact-name" }, "written by"),
      h("b", null, rule.name),
      " ",
      source >= 0
        ? h("button", { class: "link", click: go }, text)
        : h(
            "button",
            {
              class: "link",
              title: `Copy ${rule.file}:${rule.line}`,
              click: (event) => copied(`${rule.file}:${rule.line}`, event.currentTarget),
            },
            text,
          ),
    );
  }

  actions(choice) {
    const { app } = this,
      button = (text, click, key) => h("button", { class: "small", click, "aria-keyshortcuts": key }, text);
    return h(
      "span",
      { class: "actions" },
      button("Source", () => app.set({ screen: "source" }), "s"),
      button("Neighbourhood", () => app.set({ screen: "neighbourhood" }), "g"),
      button("Copy reproducer", (event) => copyReproducer(app, choice, event.currentTarget)),
      h("button", { class: "small", click: () => app.select(null), "aria-label": "Choose nothing" }, "✕"),
    );
  }

  thread(choice) {
    const { app } = this,
      { model, lit, state } = app;
    const bead = (title, text, go, here) =>
      h(
        "button",
        { class: "bead", click: () => app.set(go), "aria-pressed": String(Boolean(here)) },
        h("span", { class: "bead-title" }, title),
        h("span", { class: "bead-text" }, text),
      );
    const beads = [...this.sourceBeads(bead)];
    for (const stage of threadStages(model, state.target)) {
      const text = stageText(model, lit, stage);
      if (text)
        beads.push(
          bead(
            model.stages[stage].title,
            text,
            { screen: "source", stage },
            state.screen === "source" && state.stage === stage,
          ),
        );
    }
    const kernels =
      choice.kind === "kernel" && choice.target === state.target ? [choice.index] : kernelsIn(model, lit, state.target);
    for (const k of kernels.slice(0, FEW)) {
      beads.push(
        bead(
          "kernel",
          model.targets[state.target].kernels[k].name,
          { screen: "kernels", tab: null, pick: pickKernel(state.target, k) },
          choice.kind === "kernel",
        ),
      );
    }
    if (kernels.length > FEW)
      beads.push(bead("kernels", `+${kernels.length - FEW} more`, { screen: "kernels", tab: null }));
    return h("div", { class: "thread", role: "group", "aria-label": "From the line to the kernel" }, beads);
  }

  sourceBeads(bead) {
    const { model, choice } = this.app;
    const sites = [
      ...new Set(choice.rows.map((row) => (model.where(row) ? `${model.eq.source[row]}:${model.eq.line[row]}` : null))),
    ].filter(Boolean);
    if (choice.kind === "line" && !sites.length) sites.push(`${choice.source}:${choice.line}`);
    return sites.slice(0, FEW).map((site) => {
      const [source, line] = site.split(":").map(Number);
      return bead(
        "source",
        `${base(model.sources[source]?.file ?? "")}:${line}`,
        { screen: "source", source, pick: pickLine(source, line) },
        choice.kind === "line",
      );
    });
  }
}

/** Jaxpr stages, StableHLO and the optimised HLO: not every pass. */
function threadStages(model, target) {
  return model.stagesFor(target).filter((stage) => model.stages[stage].kind !== "pass");
}

function stageText(model, lit, stage) {
  if (model.isJaxpr(stage)) {
    const rows = model.rowsOf[stage].filter((row) => lit.has(row));
    return rows.length === 1 ? model.eq.label[rows[0]] : rows.length ? `${format.count(rows.length)} equations` : null;
  }
  const lines = new Set();
  for (const row of lit) for (const line of model.linesOf(stage).get(row) ?? []) lines.add(line);
  return lines.size ? format.plural(lines.size, "line") : null;
}

/** Kernels of a target that hold an equation of `lit`. */
export function kernelsIn(model, lit, target) {
  const found = new Set();
  for (const row of lit) for (const k of model.kernelsOf(target).get(row) ?? []) found.add(k);
  return [...found].sort((a, b) => a - b);
}

const fact = (name, value) =>
  h("span", { class: "fact" }, h("span", { class: "fact-name" }, name), h("b", null, value));
const sum = (values, rows) => rows.reduce((total, row) => total + values[row], 0);

function rowFacts(app, row) {
  const { model } = app,
    { eq } = model;
  return [
    model.where(row) &&
      h(
        "button",
        { class: "link", click: () => app.set({ screen: "source", source: eq.source[row], pick: pickRow(row) }) },
        model.where(row),
      ),
    eq.function[row] && fact("in", eq.function[row]),
    eq.variable[row] && fact("as", eq.variable[row]),
    eq.scope[row] && fact("scope", eq.scope[row]),
    h("span", { class: `direction ${eq.direction[row]}` }, eq.direction[row]),
    eq.runs[row] !== 1 && fact("runs", format.count(eq.runs[row])),
    fact("", format.flops(eq.flops[row])),
    fact("", format.bytes(eq.bytes[row])),
    eq.held[row] > 0 && fact("held", format.bytes(eq.held[row])),
    eq.rewrite[row] && fact("made by", eq.rewrite[row]),
  ];
}

function kernelFacts(kernel) {
  return [
    fact("kind", kernel.kind),
    kernel.seconds !== null && fact(kernel.time ?? "time", format.seconds(kernel.seconds)),
    kernel.measured && fact("measured", format.seconds(kernel.measured.seconds)),
    fact("", format.flops(kernel.flops)),
    fact("", format.bytes(kernel.bytes)),
    kernel.runs > 1 && fact("runs", format.count(kernel.runs)),
    fact("equations", format.count(kernel.rows.length)),
    kernel.inserted && h("span", { class: "badge" }, "put in by XLA"),
  ];
}

function byDirection(eq, rows) {
  return ["forward", "jvp", "backward", "recomputation"].flatMap((direction) => {
    const flops = sum(
      eq.flops,
      rows.filter((row) => eq.direction[row] === direction),
    );
    return flops ? [fact(direction, format.flops(flops))] : [];
  });
}
