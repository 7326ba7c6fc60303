// Screen 4: the kernels of a target, what is inside each, the values that go through memory between them, and the
// kernels of one's own.

import { h, put } from "../dom.js";
import * as format from "../format.js";
import { Grid, bar, switcher } from "../grid.js";
import { program } from "../highlight.js";
import { missing } from "../app.js";
import { pickKernel, pickRow } from "../state.js";
import { about, columns, lacking, order } from "../tables.js";

export const kernels = {
  ...about("kernels"),
  missing: (app) => app.model.unavailable(app.state.target, "kernels"),
  draw: (app, body) => new Kernels(app, body),
};

export const LOWER_BOUND = "lower bound";

/** Numbers of a kernel that need the roof: intensity, the least time, and the share of the roof that its time reaches, the measured one first. */
export function roofed(kernel, roof) {
  const intensity = kernel.bytes ? kernel.flops / kernel.bytes : null;
  const { measured } = kernel,
    taken = measured?.seconds ?? kernel.seconds,
    timed = taken && (measured || kernel.time !== LOWER_BOUND); // a bound is on the roof by itself
  const least = roof ? Math.max(kernel.flops / roof.flops, kernel.bytes / roof.bandwidth) : null;
  return {
    intensity,
    least,
    taken,
    each: measured?.runs > 1 ? measured.seconds / measured.runs : null,
    share: least !== null && timed ? least / taken : null,
    bound: roof && intensity !== null ? (intensity < roof.flops / roof.bandwidth ? "memory" : "compute") : null,
  };
}

class Kernels {
  constructor(app, body) {
    Object.assign(this, { app, body, target: app.model.targets[app.state.target] });
    this.draw();
  }

  draw() {
    const { app, target } = this,
      own = target.own_kernels,
      tabs = ["kernels", "boundaries", ...(own.length ? ["own_kernels"] : [])],
      tab = tabs.includes(app.state.tab) ? app.state.tab : "kernels";
    this.grid?.dispose();
    this.grid = null;
    const chooser = switcher(
      "Table",
      tabs.map((it) => [it, `${TITLES[it]} (${format.count(target[it].length)})`]),
      tab,
      (it) => app.set({ tab: it === "kernels" ? null : it }),
    );
    const why = tab === "boundaries" ? app.model.unavailable(app.state.target, "boundaries") : null;
    const reasons = tab === "boundaries" && !why ? app.model.unavailable(app.state.target, "reasons") : null;
    if (!why) this.grid = GRIDS[tab](app, target);
    put(
      this.body,
      h(
        "div",
        { class: "tools" },
        chooser,
        tab === "kernels" && coverage(target),
        reasons && h("span", { class: "soft" }, reasons),
      ),
      why ? missing(why) : this.grid.element,
    );
    this.reveal();
  }

  changed(names) {
    if (names.has("tab")) this.draw();
    else this.reveal();
    return true;
  }

  reveal() {
    const { choice, lit } = this.app;
    if (!choice || !this.grid) return;
    const shown = this.grid.shown.filter((it) => !it.under).map((it) => it.item);
    const item = shown.find((it) =>
      choice.kind === "kernel" ? it.index === choice.index : it.kernel?.rows.some((row) => lit.has(row)),
    );
    if (item) this.grid.reveal(item);
  }

  paint() {
    this.grid?.repaint();
  }

  dispose() {
    this.grid?.dispose();
  }
}

function coverage({ coverage: its }) {
  if (!its?.instructions) return null;
  const put_in = its.inserted?.length ? `; ${format.plural(its.inserted.length, "instruction")} put in by XLA` : "";
  return h(
    "span",
    { class: "soft", title: (its.inserted ?? []).slice(0, 40).join(" ") },
    `${format.percent(its.with_id / its.instructions)} of ${format.count(its.instructions)} instructions are traced to an equation${put_in}`,
  );
}

function kernelGrid(app, target) {
  const items = target.kernels.map((kernel, index) => ({ ...kernel, kernel, index, ...roofed(kernel, target.roof) }));
  const all = items.reduce((sum, it) => sum + (it.taken ?? 0), 0);
  for (const it of items) it.part = all ? (it.taken ?? 0) / all : null;
  const shown = kernelColumns(app, items);
  return new Grid({
    label: "Kernels",
    columns: shown,
    items,
    sort: all ? order("kernels", "kernels", shown) : null,
    enter: (item, under) =>
      app.select(under?.row === undefined ? pickKernel(app.state.target, item.index) : pickRow(under.row)),
    hover: (item, under) => app.hover(item === null ? null : under ? [under.row] : item.kernel.rows),
    paint: (element, item, under) =>
      light(
        app,
        element,
        under?.row === undefined ? item.kernel.rows : [under.row],
        !under && app.choice?.kind === "kernel" && app.choice.index === item.index,
      ),
    inside: (item) => inside(app, item.kernel),
  });
}

const MEASURED = ["measured.seconds", "measured.unseen", "each", "measured.first", "measured.last"];

function kernelColumns(app, items) {
  const words = new Set(items.map((it) => it.time).filter(Boolean)),
    most = Math.max(Number.MIN_VALUE, ...items.map((it) => it.taken ?? 0));
  const part = { show: (it) => [bar((it.taken ?? 0) / most), format.percent(it.part)] };
  const without = [...lacking(items, MEASURED), ...(words.size > 1 ? [] : ["time"])];
  return columns(app, "kernels", "kernels", { special: { part }, without });
}

/** The equations of a kernel, by source line. */
function inside(app, kernel) {
  const { model } = app;
  const rows = [...kernel.rows].sort(
    (a, b) => model.where(a).localeCompare(model.where(b), undefined, { numeric: true }) || a - b,
  );
  if (!rows.length)
    return [{ draw: () => h("span", { class: "soft" }, "No equation is inside: XLA put this kernel in.") }];
  return rows.map((row, i) => ({
    row,
    draw: () => [
      h("span", { class: "under-where" }, i && model.where(row) === model.where(rows[i - 1]) ? "" : model.where(row)),
      h("span", { class: `direction dot ${model.eq.direction[row]}`, title: model.eq.direction[row] }),
      h("code", null, program(model.eq.text[row])),
    ],
  }));
}

function boundaryGrid(app, target) {
  const name = (k) => target.kernels[k]?.name ?? "argument";
  const go = (k) =>
    h(
      "button",
      {
        class: "link",
        click: (event) => (event.preventDefault(), app.select(pickKernel(app.state.target, k), { tab: null })),
      },
      h("code", null, name(k)),
    );
  const told = target.boundaries.some((boundary) => boundary.reason !== null || boundary.gain !== null);
  const special = {
    value: { show: ({ value }) => h("code", { title: value }, value.replace(/\{[^}]*\}/g, "")) },
    producer: { show: (item) => (item.kernel ? go(item.producer) : "argument") },
    consumers: {
      show: ({ consumers }) =>
        consumers
          .slice(0, 3)
          .map((k, i) => [i > 0 && ", ", go(k)])
          .concat(consumers.length > 3 ? ` +${consumers.length - 3}` : ""),
    },
  };
  const shown = columns(app, "kernels", "boundaries", {
    special,
    without: told ? [] : ["gain", "reason"],
    kernels: target.kernels,
  });
  return new Grid({
    label: "Boundaries",
    items: target.boundaries.map((boundary, index) => ({
      ...boundary,
      index: -1 - index,
      kernel: target.kernels[boundary.producer],
    })),
    sort: order("kernels", "boundaries", shown),
    columns: shown,
    enter: (item) => item.kernel && app.select(pickKernel(app.state.target, item.producer)),
    paint: (element, item) => light(app, element, item.kernel?.rows ?? [], false),
  });
}

/** The kernels of one's own; inside of each, its module. */
function ownGrid(app, target) {
  const items = target.own_kernels.map((kernel, index) => ({
    ...kernel,
    grid: kernel.grid.join(" × ") || "1",
    made: Object.entries(kernel.figures)
      .map(([name, it]) => `${name} ${it}`)
      .join(", "),
    index: -1 - index,
  }));
  return new Grid({
    label: "Kernels of one's own",
    columns: columns(app, "kernels", "own_kernels"),
    items,
    inside: ({ module }) => module.split("\n").map((line) => ({ draw: () => h("code", null, line) })),
  });
}

const TITLES = { kernels: "kernels", boundaries: "boundaries", own_kernels: "kernels of one's own" };
const GRIDS = { kernels: kernelGrid, boundaries: boundaryGrid, own_kernels: ownGrid };

function light(app, element, rows, chosen) {
  element.classList.toggle("lit", chosen || rows.some((row) => app.lit.has(row)));
  element.classList.toggle(
    "hot",
    rows.some((row) => app.hot.has(row)),
  );
  element.setAttribute("aria-selected", String(chosen));
}
