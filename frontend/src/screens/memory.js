// Screen 6: live bytes over program order, and what is alive at a moment.

import { h, put } from "../dom.js";
import * as format from "../format.js";
import { Grid, switcher } from "../grid.js";
import { missing } from "../app.js";
import { plot, stepped } from "../plot.js";
import { pickKernel, pickRow } from "../state.js";
import { colour } from "../theme.js";
import { about, columns, order, plainTable, title } from "../tables.js";

const FAR = 8;

export const memory = {
  ...about("memory"),
  draw: (app, body) => new Memory(app, body),
};

class Memory {
  constructor(app, body) {
    Object.assign(this, { app, body });
    this.draw();
  }

  get compiler() {
    return this.app.state.tab === "compiler";
  }

  draw() {
    const { app } = this;
    this.dispose();
    const tabs = switcher(
      "Plan",
      [
        ["plan", "xlamini's plan"],
        ["compiler", "the compiler's buffers"],
      ],
      this.compiler ? "compiler" : "plan",
      (tab) => app.set({ tab: tab === "plan" ? null : tab }),
    );
    this.data = this.compiler ? compilerPlan(app) : ownPlan(app);
    if (this.data.why) return put(this.body, h("div", { class: "tools" }, tabs), missing(this.data.why));
    this.host = h("div", {
      class: "plot memory-plot",
      tabindex: 0,
      "aria-label": "Live bytes; arrow keys move through the moments",
      keydown: (event) => this.key(event),
    });
    this.title = h("h2", { "aria-live": "polite" });
    this.alive = h("div", { class: "fill" });
    put(
      this.body,
      h("div", { class: "tools" }, tabs, h("span", null, this.data.facts)),
      this.host,
      h(
        "div",
        { class: "columns memory-columns" },
        h("section", { class: "fill" }, this.title, this.alive),
        h("section", null, this.compiler ? null : groups(app)),
      ),
    );
    this.moment = this.fromChoice() ?? this.data.peakAt;
    this.plot = this.chart();
    this.show();
  }

  chart() {
    const { bytes, capacity } = this.data,
      most = bytes.reduce((a, b) => Math.max(a, b), 0);
    const near = capacity && capacity < most * FAR,
      top = near ? Math.max(capacity, most) * 1.08 : most * 1.08 || 1;
    const options = {
      scales: { x: { time: false }, y: { range: [0, top] } },
      series: [
        {},
        { stroke: colour("accent"), width: 1.5, fill: colour("lit"), paths: stepped(), points: { show: false } },
      ],
      axes: [
        {
          label: this.compiler ? "kernels, in the compiler's order" : "equations, in program order",
          values: (_, splits) => splits.map((it) => (Number.isInteger(it) ? format.count(it) : null)),
        },
        {
          label: "live bytes",
          size: 76,
          values: (_, splits) => splits.map(format.bytes),
          splits: (u) => binarySteps(top),
        },
      ],
      cursor: { y: false, points: { show: false } },
      hooks: { draw: [(u) => this.lines(u, near ? capacity : null)] },
    };
    const it = plot(this.host, options, [bytes.map((_, i) => i), bytes], "Live bytes over program order");
    it.over.addEventListener("click", () => it.cursor.idx !== null && this.choose(it.cursor.idx));
    return it;
  }

  lines(u, capacity) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.lineWidth = devicePixelRatio * 1.5;
    const line = (x0, y0, x1, y1, name, dash) => {
      ctx.strokeStyle = colour(name);
      ctx.setLineDash(dash);
      ctx.beginPath();
      ctx.moveTo(x0, y0);
      ctx.lineTo(x1, y1);
      ctx.stroke();
    };
    const x = u.valToPos(this.moment, "x", true);
    line(x, bbox.top, x, bbox.top + bbox.height, "ink", []);
    if (capacity) {
      const y = u.valToPos(capacity, "y", true);
      line(bbox.left, y, bbox.left + bbox.width, y, "bad", [6 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.fillStyle = colour("bad");
      ctx.font = `${11 * devicePixelRatio}px system-ui`;
      ctx.fillText("capacity", bbox.left + 6 * devicePixelRatio, y - 5 * devicePixelRatio);
    }
    ctx.restore();
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
    if (!step) return;
    event.preventDefault();
    this.choose(Math.max(0, Math.min(this.data.bytes.length - 1, this.moment + step)));
  }

  choose(moment) {
    this.moment = moment;
    const pick = this.data.pickOf(moment);
    if (pick && pick !== this.app.state.pick) this.app.select(pick);
    else this.show();
    this.plot.redraw(false);
  }

  fromChoice() {
    const { choice } = this.app;
    return choice ? this.data.momentOf(choice) : null;
  }

  changed(names) {
    if (names.has("tab")) {
      this.draw();
      return true;
    }
    if (this.data.why) return true;
    const moment = this.fromChoice();
    if (moment !== null && moment !== this.moment && this.data.pickOf(this.moment) !== this.app.state.pick)
      this.moment = moment;
    this.show();
    this.plot?.redraw(false);
    return true;
  }

  /** The table of what is alive at the moment. */
  show() {
    const { moment, data, app } = this;
    if (data.why) return;
    put(
      this.title,
      `Alive at ${data.nameOf(moment)}: ${format.bytes(data.bytes[moment])}${moment === data.peakAt ? ", the peak" : ""}`,
    );
    this.grid?.dispose();
    const items = data.values.filter((value) => value.first <= moment && moment <= value.until);
    const table = this.compiler ? "buffers" : "values",
      shown = memoryColumns(app, table);
    this.grid = new Grid({
      label: "Alive",
      items,
      sort: order("memory", table, shown),
      columns: shown,
      enter: (value) => value.made !== null && app.select(pickRow(value.made)),
      hover: (value) => app.hover(value?.made == null ? null : [value.made]),
      paint: (element, value) => {
        element.classList.toggle("lit", value.made !== null && app.lit.has(value.made));
        element.classList.toggle("hot", value.made !== null && app.hot.has(value.made));
      },
    });
    put(this.alive, this.grid.element);
  }

  paint() {
    this.grid?.repaint();
  }

  dispose() {
    this.grid?.dispose();
    this.plot?.dispose();
    this.grid = this.plot = null;
  }
}

function memoryColumns(app, table) {
  const kept = (it) => it.kept_for_backward && h("span", { class: "badge strong" }, "kept for the backward pass");
  return columns(app, "memory", table, { special: { kept_for_backward: { show: kept } } });
}

function ownPlan(app) {
  const { model } = app,
    plan = model.report.memory;
  if (!plan?.moments?.length) return { why: "xlamini made no plan for this program" };
  const rows = plan.moments.map((it) => it.row),
    at = new Map(rows.map((row, i) => [row, i]));
  const bytes = plan.moments.map((it) => it.bytes),
    target = model.targets[app.state.target];
  const momentOf = (choice) =>
    [...app.lit].reduce(
      (best, row) => (at.has(row) && (best === null || at.get(row) < best) ? at.get(row) : best),
      null,
    );
  return {
    bytes,
    capacity: target?.memory?.capacity ?? null,
    peakAt: argmax(bytes),
    momentOf,
    pickOf: (i) => (rows[i] === null ? null : pickRow(rows[i])),
    nameOf: (i) => [model.where(rows[i]), model.eq.label[rows[i]]].filter(Boolean).join(", ") || `moment ${i}`,
    values: plan.values,
    facts: [
      `peak ${format.bytes(plan.peak)}`,
      ` · arguments ${format.bytes(plan.arguments)} · results ${format.bytes(plan.results)} · temporaries ${format.bytes(plan.temporaries)}`,
      h("span", { class: "soft" }, ` Before compiling. ${(plan.left_out ?? []).join(" ")}`),
    ],
  };
}

function compilerPlan(app) {
  const { model } = app,
    target = model.targets[app.state.target],
    why = ["memory", "moments", "buffers"].map((part) => model.unavailable(app.state.target, part)).find(Boolean);
  if (why) return { why };
  if (!target.moments?.length) return { why: "the compiler did not tell its buffers" };
  const bytes = target.moments.map((it) => it.bytes),
    at = new Map(target.moments.map((it, i) => [it.kernel, i]).filter(([k]) => k !== null));
  const momentOf = (choice) =>
    (choice.kind === "kernel"
      ? at.get(choice.index)
      : [...app.lit]
          .flatMap((row) => model.kernelsOf(app.state.target).get(row) ?? [])
          .map((k) => at.get(k))
          .find((i) => i !== undefined)) ?? null;
  const m = target.memory;
  return {
    bytes,
    capacity: m?.capacity ?? null,
    peakAt: argmax(bytes),
    momentOf,
    pickOf: (i) => (target.moments[i].kernel === null ? null : pickKernel(app.state.target, target.moments[i].kernel)),
    nameOf: (i) => target.kernels[target.moments[i].kernel]?.name ?? `moment ${i}`,
    values: (target.buffers ?? []).map((it) => ({
      ...it,
      made: it.row,
      until: it.last,
      reader: target.kernels[target.moments[it.last]?.kernel]?.name,
    })),
    facts: m
      ? [
          `peak ${format.bytes(m.peak)}${m.capacity ? ` of ${format.bytes(m.capacity)}` : ""} · arguments ${format.bytes(m.arguments)} · outputs ${format.bytes(m.outputs)} · temporaries ${format.bytes(m.temporaries)} · code ${format.bytes(m.code)}`,
        ]
      : [],
  };
}

const argmax = (numbers) => numbers.reduce((best, x, i) => (x > numbers[best] ? i : best), 0);

function binarySteps(top) {
  let step = 2 ** Math.floor(Math.log2(top / 4));
  while (top / step > 7) step *= 2;
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step);
}

function groups(app) {
  const its = app.model.report.memory?.groups ?? [];
  if (!its.length) return null;
  const link = ({ scope }) => h("button", { class: "link", click: () => app.select(`scope:${scope}`) }, scope);
  const shown = columns(app, "memory", "groups", { special: { scope: { show: link } } });
  return [h("h2", null, title("memory", "groups")), plainTable("Recomputing", shown, its)];
}
