// Screen 8: which machine to take. One column for each target; rows are the same equations.

import { h, put } from "../dom.js";
import * as format from "../format.js";
import { Grid, bar, plain } from "../grid.js";
import { pickKernel, pickLine } from "../state.js";
import { base } from "../model.js";
import { about, columns } from "../tables.js";

export const targets = {
  ...about("targets"),
  missing: (app) => (app.model.targets.length ? null : app.model.unavailable(0, "targets")),
  draw: (app, body) => new Targets(app, body),
};

class Targets {
  constructor(app, body) {
    this.app = app;
    const its = app.model.targets,
      good = its.flatMap((target, t) => (target.error ? [] : [t]));
    const items = its.map((target) => sideBySide(app, target));
    const [, ...shown] = columns(app, "targets", "targets", { special: special(app), without: unmeasured(app) });
    const rows = shown.map((it) => [
      it.title,
      ...items.map((item) =>
        item.error ? it.field === "place" && h("span", { class: "soft" }, item.error) : it.show(item),
      ),
    ]);
    put(
      body,
      h(
        "div",
        { class: "scroll-x flat" },
        plain(
          "Targets",
          [
            "",
            ...its.map((target, t) => h("button", { class: "link", click: () => app.set({ target: t }) }, target.name)),
          ],
          rows,
        ),
      ),
      h("h2", null, "Time by source line"),
      this.lines(good),
    );
  }

  lines(good) {
    const { app } = this,
      { model } = app,
      heats = good.map((t) => model.siteHeat("time", t)),
      totals = heats.map((heat) => [...heat.values()].reduce((a, b) => a + b, 0));
    const keys = [...new Set(heats.flatMap((heat) => [...heat.keys()]))];
    if (!keys.length) return h("p", { class: "soft" }, "No kernel has a time.");
    const items = keys.map((key) => {
      const [source, line] = key.split(":").map(Number),
        file = model.sources[source];
      return {
        source,
        line,
        text: file?.lines?.[line - 1]?.trim() ?? "",
        where: `${base(file?.file ?? "")}:${line}`,
        times: heats.map((heat) => heat.get(key) ?? 0),
        rows: model.sites.get(key),
      };
    });
    this.grid = new Grid({
      label: "Time by source line",
      items,
      sort: [2, true],
      enter: (it) => app.select(pickLine(it.source, it.line)),
      hover: (it) => app.hover(it?.rows ?? null),
      paint: (element, it) => {
        element.classList.toggle(
          "lit",
          it.rows.some((row) => app.lit.has(row)),
        );
        element.classList.toggle(
          "hot",
          it.rows.some((row) => app.hot.has(row)),
        );
      },
      columns: [
        { title: "line", width: "minmax(7rem, 0.6fr)", value: (it) => it.where },
        { title: "text", width: "minmax(10rem, 2fr)", value: (it) => it.text, show: (it) => h("code", null, it.text) },
        ...good.map((t, k) => ({
          title: model.targets[t].name,
          width: "minmax(8rem, 0.7fr)",
          number: true,
          value: (it) => it.times[k],
          show: (it) => [bar(totals[k] ? it.times[k] / totals[k] : 0), format.seconds(it.times[k] || null)],
        })),
      ],
    });
    return h("div", { class: "fill short" }, this.grid.element);
  }

  changed() {
    return true;
  }

  paint() {
    this.grid?.repaint();
  }

  dispose() {
    this.grid?.dispose();
  }
}

/** A target with the numbers by which targets are compared. */
export function sideBySide(app, target) {
  const { memory, cost, seconds } = target,
    { model } = app,
    capacity = memory?.capacity ?? null;
  const longest = target.kernels
    .map((kernel, k) => ({ ...kernel, k }))
    .filter((kernel) => kernel.seconds)
    .sort((a, b) => b.seconds - a.seconds);
  return {
    ...target,
    place: `${target.devices > 1 ? `${target.devices} × ` : ""}${target.device ?? target.platform}`,
    peak: memory?.peak,
    temporaries: memory?.temporaries,
    capacity,
    full: capacity === null ? null : memory.peak / capacity,
    fits: capacity === null ? null : memory.peak <= capacity,
    flops: cost?.flops,
    bytes: cost?.bytes,
    kernels: target.kernels.length,
    collectives: target.collectives.length,
    equations: model.stages[model.final]?.count,
    lowered: seconds?.lower,
    compiled: seconds?.compile,
    seconds: target.prediction?.seconds,
    time: target.measured?.seconds,
    longest,
  };
}

/** The column of measured times, if there are none. */
export const unmeasured = (app) => (app.model.targets.some((it) => it.measured) ? [] : ["time"]);

/** What is marked, linked or explained in a table of targets. */
export function special(app) {
  const kernel = (n) => ({
    show: ({ longest, name }) => {
      const it = longest[n],
        t = app.model.targets.findIndex((target) => target.name === name);
      const go = () => app.set({ target: t, screen: "kernels", tab: null, pick: pickKernel(t, it.k) });
      return it && [h("button", { class: "link", click: go }, it.name), ` ${format.seconds(it.seconds)}`];
    },
  });
  const told = (name, show, source) => ({ show: (it) => h("span", { title: source(it) }, show(it[name])) });
  return {
    peak: { show: (it) => h("span", { class: it.full > 1 ? "bad" : "" }, format.bytes(it.peak)) },
    full: { show: (it) => it.full !== null && [bar(it.full, it.full > 1 ? "over" : ""), format.percent(it.full)] },
    flops: told("flops", format.flops, (it) => it.cost && `counted by ${it.cost.source}`),
    seconds: told("seconds", format.seconds, (it) => it.prediction?.source),
    time: told("time", format.seconds, (it) => it.measured?.source),
    "longest.0": kernel(0),
    "longest.1": kernel(1),
    "longest.2": kernel(2),
  };
}
