// Screen 2: the user's file beside the stage of choice. The panes are views of the same rows, so what is lit in one is lit in the other.

import { h, put } from "../dom.js";
import { MEASURES, plural, seconds } from "../format.js";
import { check, switcher } from "../grid.js";
import { python } from "../highlight.js";
import { stage as stageKey } from "../keys.js";
import { base } from "../model.js";
import { pickLine } from "../state.js";
import { VirtualList } from "../virtual.js";
import { gutter, heatScale } from "../heat.js";
import { Listing } from "../listing.js";
import { about, columns, plainTable, title } from "../tables.js";

export const source = {
  ...about("source"),
  draw: (app, body) => new SourceScreen(app, body),
};

class SourceScreen {
  constructor(app, body) {
    Object.assign(this, { app, body, library: Boolean(app.model.sources[app.state.source]?.library), fold: false });
    this.draw();
  }

  draw() {
    const { app } = this;
    this.dispose();
    this.file = new SourceFile(app);
    this.listing = new Listing(app, this.fold);
    const { measured } = app.model.targets[app.state.target] ?? {};
    const heats = Object.entries(MEASURES).flatMap(([name, it]) =>
      name !== "measured" || measured ? [[name, it.title]] : [],
    );
    put(
      this.body,
      h(
        "div",
        { class: "tools" },
        h("span", { class: "soft" }, "heat"),
        switcher("Heat", heats, app.state.heat, (heat) => app.set({ heat })),
        this.files(),
        check("library frames", this.library, (on) => ((this.library = on), this.draw())),
        h("span", { class: "gap" }),
        stagePicker(app),
        check("fold by scope", this.fold, (on) => ((this.fold = on), this.draw())),
      ),
      measured && inserted(app, measured),
      h(
        "div",
        { class: "panes" },
        h("section", { class: "pane", "aria-label": "Source" }, this.file.element),
        h("section", { class: "pane", "aria-label": "Stage" }, this.listing.element),
      ),
    );
    this.reveal();
  }

  files() {
    const { app } = this,
      { sources } = app.model;
    const shown = sources.flatMap((it, i) => (!it.library || this.library ? [i] : []));
    const select = h(
      "select",
      { "aria-label": "File", class: "files", change: () => app.set({ source: Number(select.value) }) },
      shown.map((i) => h("option", { value: i }, base(sources[i].file))),
    );
    select.value = app.state.source;
    return select;
  }

  changed(names) {
    if (names.has("heat") || names.has("stage") || names.has("source")) this.draw();
    else this.reveal(names.has("pick"));
    return true;
  }

  reveal() {
    const { app } = this,
      { choice, model } = app;
    if (!choice) return;
    const site =
      choice.kind === "line"
        ? choice
        : { source: model.eq.source[choice.rows[0]], line: model.eq.line[choice.rows[0]] };
    if (site.source === app.state.source) this.file.reveal(site.line);
    this.listing.reveal();
  }

  paint() {
    this.file.list?.repaint();
    this.listing.list?.repaint();
  }

  dispose() {
    this.file?.list?.dispose();
    this.listing?.list?.dispose();
  }
}

/** What was measured, and what of it no line has. */
function inserted(app, measured) {
  const its = app.model.targets[app.state.target].kernels.filter((it) => it.inserted && it.measured),
    sum = its.reduce((all, it) => all + it.measured.seconds, 0);
  its.sort((a, b) => b.measured.seconds - a.measured.seconds);
  return h(
    "details",
    { class: "flat" },
    h("summary", null, `Measured ${seconds(measured.seconds)} · put in by XLA ${seconds(sum)}`),
    h("p", { class: "soft" }, measured.source),
    its.length > 0 && plainTable(title("source", "inserted"), columns(app, "source", "inserted"), its.slice(0, 20)),
  );
}

/** The select of stages, grouped by kind, with its two buttons. */
export function stagePicker(app) {
  const { model, state } = app,
    stages = model.stagesFor(state.target);
  const kinds = [...new Set(stages.map((i) => model.stages[i].kind))];
  const names = { jaxpr: "xlamini", stablehlo: "lowered", pass: "XLA's passes", hlo: "compiled", assembly: "assembly" };
  const select = h(
    "select",
    { "aria-label": "Stage", id: "stage", change: () => app.set({ stage: Number(select.value) }) },
    kinds.map((kind) =>
      h(
        "optgroup",
        { label: names[kind] ?? kind },
        stages
          .filter((i) => model.stages[i].kind === kind)
          .map((i) => h("option", { value: i }, `${model.stages[i].title} (${model.stages[i].count})`)),
      ),
    ),
  );
  select.value = state.stage;
  return h(
    "span",
    { class: "stage-picker" },
    h(
      "button",
      { class: "small", "aria-label": "Previous stage", "aria-keyshortcuts": "[", click: () => stageKey(app, -1) },
      "[",
    ),
    select,
    h(
      "button",
      { class: "small", "aria-label": "Next stage", "aria-keyshortcuts": "]", click: () => stageKey(app, 1) },
      "]",
    ),
  );
}

/** One file with its heat; where the text is not embedded, the lines that equations name. */
class SourceFile {
  constructor(app) {
    const { model, state } = app,
      file = model.sources[state.source];
    Object.assign(this, { app, source: state.source });
    if (!file)
      return Object.assign(this, {
        element: h("p", { class: "missing" }, "No equation has a line of a file."),
      });
    this.lines = file.lines ? file.lines.map((text, i) => [i + 1, text]) : known(model, state.source);
    this.heat = model.siteHeat(state.heat, state.target);
    this.scale = heatScale([...this.heat.values()]);
    this.list = new VirtualList({
      count: this.lines.length,
      label: `Lines of ${base(file.file)}`,
      draw: (i) => this.line(i),
      paint: (el, i) => this.paint(el, i),
      enter: (i) => app.select(pickLine(this.source, this.lines[i][0])),
      hover: (i) => app.hover(i === null ? null : this.rows(i)),
    });
    this.element = h(
      "div",
      { class: "fill" },
      h("p", { class: "pane-title", title: file.file }, file.file, !file.lines && " — the text is not in the report"),
      this.list.element,
    );
  }

  rows(i) {
    return this.app.model.sites.get(`${this.source}:${this.lines[i][0]}`) ?? [];
  }

  line(i) {
    const [line, text] = this.lines[i],
      value = this.heat.get(`${this.source}:${line}`) ?? 0;
    return h(
      "div",
      { class: `code ${this.rows(i).length ? "" : "plain-line"}` },
      gutter(value, this.scale, MEASURES[this.app.state.heat].show),
      h("span", { class: "line-number" }, line),
      h("span", { class: "text" }, python(text)),
    );
  }

  paint(element, i) {
    const rows = this.rows(i),
      { choice, lit, hot } = this.app;
    const here = choice?.kind === "line" && choice.source === this.source && choice.line === this.lines[i][0];
    element.classList.toggle("lit", here || rows.some((row) => lit.has(row)));
    element.classList.toggle(
      "hot",
      rows.some((row) => hot.has(row)),
    );
    element.setAttribute("aria-selected", String(here));
  }

  reveal(line) {
    const i = this.lines?.findIndex(([number]) => number === line) ?? -1;
    if (i >= 0) this.list.reveal(i);
  }
}

/** The lines of a file that equations name, each with what is known of it: [[line, text]]. */
function known(model, source) {
  const lines = [];
  for (const [key, rows] of model.sites) {
    const [file, line] = key.split(":").map(Number);
    const last = rows.filter((row) => model.eq.stage[row] === model.final).length;
    const inside = model.eq.function[rows[0]];
    if (file === source) lines.push([line, `${plural(last, "equation")}${inside ? ` in ${inside}` : ""}`]);
  }
  return lines.sort((a, b) => a[0] - b[0]);
}
