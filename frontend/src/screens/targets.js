// Screen 8: which machine to take. One column for each target; rows are the same equations.

import { h, put } from "../dom.js";
import * as format from "../format.js";
import { Grid, bar, plain } from "../grid.js";
import { pickKernel, pickLine } from "../state.js";
import { base } from "../model.js";
import { peak } from "./summary.js";

export const targets = {
  id: "targets",
  title: "Targets",
  about:
    "The same program on each target, side by side: whether it fits, what it costs and how long a call should take; no target runs the program. Below: the time of each source line on every target.",
  missing: (app) => (app.model.targets.length ? null : app.model.unavailable(0, "targets")),
  draw: (app, body) => new Targets(app, body),
};

class Targets {
  constructor(app, body) {
    this.app = app;
    const its = app.model.targets,
      good = its.flatMap((target, t) => (target.error ? [] : [t]));
    const row = (name, show) => [name, ...its.map((target, t) => (target.error ? "" : show(target, t)))];
    const rows = [
      [
        "device",
        ...its.map((target) =>
          target.error
            ? h("span", { class: "soft" }, target.error)
            : `${target.devices > 1 ? `${target.devices} × ` : ""}${target.device ?? target.platform}`,
        ),
      ],
      row("fits", fits),
      row("peak of capacity", (it) => peak(it.memory)),
      row(
        "time of a call",
        (it) =>
          it.prediction && [
            h("b", null, format.seconds(it.prediction.seconds)),
            h("span", { class: "soft" }, ` ${it.prediction.source}`),
          ],
      ),
      row("FLOPs", (it) => format.flops(it.cost?.flops)),
      row("bytes", (it) => format.bytes(it.cost?.bytes)),
      row("kernels", (it) => format.count(it.kernels.length)),
      row("collectives", (it) => format.count(it.collectives.length)),
      row("lower, compile", (it) => `${format.seconds(it.seconds?.lower)}, ${format.seconds(it.seconds?.compile)}`),
      row(
        "peaks",
        (it) =>
          it.roof &&
          h(
            "span",
            { title: it.roof.source },
            `${format.flops(it.roof.flops)}/s, ${format.bytes(it.roof.bandwidth)}/s`,
          ),
      ),
      row("longest kernels", (it, t) => top(app, it, t)),
    ];
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

function fits({ memory }) {
  if (!memory || memory.capacity === null) return h("span", { class: "soft" }, "capacity unknown");
  return memory.peak <= memory.capacity
    ? `yes, ${format.percent(memory.peak / memory.capacity)} full`
    : h("span", { class: "bad" }, `no, ${format.bytes(memory.peak - memory.capacity)} too much`);
}

function top(app, target, t) {
  const longest = target.kernels
    .map((kernel, k) => [kernel, k])
    .filter(([kernel]) => kernel.seconds)
    .sort((a, b) => b[0].seconds - a[0].seconds)
    .slice(0, 3);
  return h(
    "ol",
    null,
    longest.map(([kernel, k]) =>
      h(
        "li",
        null,
        h(
          "button",
          { class: "link", click: () => app.set({ target: t, screen: "kernels", tab: null, pick: pickKernel(t, k) }) },
          kernel.name,
        ),
        h("span", { class: "soft" }, ` ${format.seconds(kernel.seconds)}`),
      ),
    ),
  );
}
