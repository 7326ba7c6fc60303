// Screen 2: the time by line, beside the text of the file.

import { css, h, put } from "../../dom.js";
import * as format from "../../format.js";
import { Grid } from "../../grid.js";
import { gutter, heatScale } from "../../heat.js";
import { python } from "../../highlight.js";
import { VirtualList } from "../../virtual.js";
import { base, pickLine } from "../model.js";
import { swatch } from "../swatch.js";

const OF_HOST = ["waited", "compiling", "Python", "moving", "moved"];

export const lines = {
  id: "lines",
  title: "Lines",
  about:
    "The time of the kernels by the line that they come from; a kernel that is fused from several lines counts for the line of its result. The other times are those of the host.",
  missing: (app) => (app.model.lines.length ? null : "The recording has no run of a kernel."),
  draw: (app, body) => new Lines(app, body),
};

class Lines {
  constructor(app, body) {
    Object.assign(this, { app, body });
    this.grid = grid(app);
    put(
      body,
      h(
        "div",
        { class: "panes by-line" },
        h("section", { class: "side", "aria-label": "Lines" }, this.grid.element),
        (this.pane = h("section", { class: "pane", "aria-label": "Source" })),
      ),
    );
    this.draw();
    this.reveal();
  }

  /** The file of the choice, or that of the line that took longest. */
  draw() {
    const { app } = this,
      known = app.model.lines.filter((it) => it.file !== null);
    const file = app.choice?.line.file ?? known[0]?.file;
    if (this.file && file === this.file.number) return;
    this.file?.list?.dispose();
    this.file = new File(app, file);
    put(this.pane, this.file.element);
  }

  changed() {
    this.draw();
    this.reveal();
    return true;
  }

  reveal() {
    const { choice } = this.app;
    if (!choice) return;
    this.grid.reveal(choice.line);
    this.file.reveal(choice.line);
  }

  paint() {
    this.grid.repaint();
    this.file.list?.repaint();
  }

  dispose() {
    this.grid.dispose();
    this.file.list?.dispose();
  }
}

function grid(app) {
  const { lines: items } = app.model;
  const number = (title, field, width, show, about) => ({
    title,
    width,
    about,
    number: true,
    value: (it) => it[field],
    show: (it) => (it[field] ? show(it[field]) : ""),
  });
  const columns = [
    {
      title: "line",
      width: "minmax(6.5rem, 1.4fr)",
      value: (it) => it.title,
      show: (it) => [swatch(it), h("span", { title: it.name }, it.title)],
    },
    number("time", "seconds", "3.6rem", format.seconds),
    number("share", "share", "3.2rem", format.percent),
    number("calls", "calls", "2.5rem", format.count),
    number("waited", "waited", "3.6rem", format.seconds, "The time for which the host waited here for the device"),
    number(
      "compiling",
      "compiled",
      "4.2rem",
      format.seconds,
      "Tracing and compiling the function that is defined here",
    ),
    number("Python", "python", "3.6rem", format.seconds, "The line's own Python, by samples of the main thread"),
    number("moving", "moved", "3.6rem", format.seconds, "Moving arrays to a device"),
    number("moved", "bytes", "3.8rem", format.bytes, "What was moved to a device"),
    {
      title: "",
      width: "minmax(4rem, 1fr)",
      value: (it) => it.text,
      show: (it) => h("code", { title: it.text }, it.text),
    },
  ].filter((it) => !OF_HOST.includes(it.title) || items.some((line) => it.value(line)));
  const grid = new Grid({
    label: "Lines",
    columns,
    items,
    sort: [1, true],
    enter: (it) => app.select(pickLine(it)),
    hover: (it) => app.hover(it),
    paint: (element, it) => app.light(element, it),
  });
  const widths = columns.map((it) => Number.parseFloat(it.width.replace("minmax(", "")));
  css(grid.element, { "--least": `${widths.reduce((sum, it) => sum + it + 0.75, 2)}rem` });
  return grid;
}

/** The text of a file around its lines. */
class File {
  constructor(app, number) {
    const { model } = app,
      file = model.files[number];
    Object.assign(this, { app, number });
    if (!file?.texts.length)
      return Object.assign(this, {
        element: h("p", { class: "missing" }, "The text of the lines is not in this page."),
      });
    const timed = new Map(model.lines.filter((it) => it.file === number).map((it) => [it.line, it]));
    const costs = (line) => (line ? line.seconds || line.waited || line.compiled || line.python || line.moved : 0);
    this.rows = withGaps(file, timed);
    this.scale = heatScale(this.rows.map((it) => costs(it.line)));
    this.list = new VirtualList({
      count: this.rows.length,
      label: `Lines of ${base(file.path)}`,
      draw: (i) => this.row(this.rows[i], costs(this.rows[i].line)),
      paint: (element, i) => this.rows[i].line && app.light(element, this.rows[i].line),
      enter: (i) => this.rows[i].line && app.select(pickLine(this.rows[i].line)),
      hover: (i) => app.hover(i === null ? null : (this.rows[i].line ?? null)),
    });
    this.element = h(
      "div",
      { class: "fill" },
      h("p", { class: "pane-title", title: file.path }, file.path),
      this.list.element,
    );
  }

  row({ number, text, line }, cost) {
    if (number === null) return h("div", { class: "code skipped" }, h("span", { class: "heat" }), "⋯");
    return h(
      "div",
      { class: `code ${line ? "" : "plain-line"}` },
      gutter(cost, this.scale, format.seconds),
      h("span", { class: "line-number" }, number),
      h("span", { class: "text" }, python(text)),
    );
  }

  reveal(line) {
    const i = this.rows?.findIndex((it) => it.line === line) ?? -1;
    if (i >= 0) this.list.reveal(i);
  }
}

/** The lines that the page has, with a row where some are left out. */
function withGaps(file, timed) {
  const rows = [];
  file.numbers.forEach((number, i) => {
    if (i ? number > file.numbers[i - 1] + 1 : number > 1) rows.push({ number: null });
    rows.push({ number, text: file.texts[i], line: timed.get(number) });
  });
  return rows;
}
