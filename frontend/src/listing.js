// The text of a stage, line by line, with the heat of each line's equations; runs of one named scope fold.

import { h } from "./dom.js";
import { MEASURES, plural } from "./format.js";
import { folded } from "./folds.js";
import { gutter, heatScale } from "./heat.js";
import { program, withoutMetadata } from "./highlight.js";
import { pickRow } from "./state.js";
import { VirtualList } from "./virtual.js";

/** The pane of the stage of the state. */
export class Listing {
  constructor(app, fold) {
    const { model, state } = app,
      stage = model.stages[state.stage];
    Object.assign(this, { app, stage, fold, open: new Set() });
    if (!stage)
      return Object.assign(this, { element: h("p", { class: "missing" }, "This report has no program text.") });
    this.values = this.perLine();
    this.scale = heatScale(this.values);
    this.arrange();
    this.list = new VirtualList({
      count: this.items.length,
      label: stage.title,
      draw: (i) => this.draw(this.items[i]),
      paint: (el, i) => this.paint(el, this.items[i]),
      enter: (i) => this.enter(this.items[i]),
      hover: (i) => app.hover(i === null ? null : this.rowsOf(this.items[i])),
      fold: (i, open) => this.items[i].scope !== undefined && this.toggle(this.items[i], open),
    });
    this.element = h(
      "div",
      { class: "fill" },
      h(
        "p",
        { class: "pane-title" },
        stage.title,
        h("span", { class: "soft" }, ` · ${plural(stage.lines.length, "line")}`),
      ),
      this.list.element,
    );
  }

  /** The measure of each line: a row counts at its first line. */
  perLine() {
    const { model, state } = this.app,
      values = model.measure(state.heat, state.target),
      seen = new Set();
    return this.stage.rows.map((rows) =>
      rows.reduce((sum, row) => (seen.has(row) ? sum : (seen.add(row), sum + values[row])), 0),
    );
  }

  arrange() {
    const { model } = this.app,
      { lines, rows } = this.stage;
    this.items = this.fold ? folded(rows, (row) => model.eq.scope[row], this.open) : lines.map((_, line) => ({ line }));
    this.at = new Map(
      this.items.flatMap((item, i) =>
        item.scope === undefined ? [[item.line, i]] : item.open ? [] : item.lines.map((line) => [line, i]),
      ),
    );
  }

  draw(item) {
    if (item.scope === undefined) {
      const text = withoutMetadata(this.stage.lines[item.line]);
      return h(
        "div",
        { class: "code" },
        gutter(this.values[item.line], this.scale, this.show),
        h("span", { class: "line-number" }, item.line + 1),
        h("span", { class: "text" }, program(text)),
      );
    }
    const total = item.lines.reduce((sum, line) => sum + this.values[line], 0);
    return h(
      "div",
      { class: "code fold", "aria-expanded": String(item.open) },
      gutter(item.open ? 0 : total, heatScale([total]), this.show),
      h("span", { class: "line-number" }, item.open ? "▾" : "▸"),
      h(
        "span",
        { class: "text" },
        "  ".repeat(item.depth),
        h("b", null, item.scope),
        h("span", { class: "soft" }, ` ${plural(item.lines.length, "line")}`),
      ),
    );
  }

  get show() {
    return MEASURES[this.app.state.heat].show;
  }

  rowsOf(item) {
    return item.scope === undefined
      ? (this.stage.rows[item.line] ?? [])
      : item.lines.flatMap((line) => this.stage.rows[line]);
  }

  enter(item) {
    if (item.scope !== undefined) return this.toggle(item, !item.open);
    const rows = this.rowsOf(item);
    if (rows.length) this.app.select(pickRow(rows[0]));
  }

  toggle(item, open) {
    this.open[open ? "add" : "delete"](item.key);
    this.arrange();
    this.list.resize(this.items.length);
  }

  paint(element, item) {
    const rows = this.rowsOf(item),
      { lit, hot } = this.app;
    element.classList.toggle(
      "lit",
      rows.some((row) => lit.has(row)),
    );
    element.classList.toggle(
      "hot",
      rows.some((row) => hot.has(row)),
    );
    element.setAttribute("aria-selected", String(rows.some((row) => lit.has(row))));
  }

  /** Makes the first lit line visible. */
  reveal() {
    if (!this.stage) return;
    const { model, state, lit } = this.app,
      lines = model.linesOf(state.stage);
    const first = [...lit].reduce((best, row) => Math.min(best, lines.get(row)?.[0] ?? Infinity), Infinity);
    if (this.at.has(first)) this.list.reveal(this.at.get(first));
  }
}
