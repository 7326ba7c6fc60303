// Screen 3: the kernels, each with its equations, its line and its runs.

import { h, put } from "../../dom.js";
import * as format from "../../format.js";
import { Grid, bar } from "../../grid.js";
import { pickKernel, pickLine } from "../model.js";
import { swatch } from "../swatch.js";

export const kernels = {
  id: "kernels",
  title: "Kernels",
  about:
    "What the device ran: each kernel with the equations that it computes, the line that they come from, and its runs.",
  missing: (app) => (app.model.kernels.length ? null : "The recording has no run of a kernel."),
  draw: (app, body) => new Kernels(app, body),
};

class Kernels {
  constructor(app, body) {
    this.app = app;
    this.grid = grid(app);
    put(body, this.grid.element);
    this.reveal();
  }

  changed() {
    this.reveal();
    return true;
  }

  reveal() {
    const { choice, model } = this.app;
    const first = this.grid.shown.find(({ item }) => choice?.kernels.has(item.i));
    if (first) this.grid.reveal(model.kernels[first.item.i]);
  }

  paint() {
    this.grid.repaint();
  }

  dispose() {
    this.grid.dispose();
  }
}

function grid(app) {
  const { kernels: items, programs } = app.model,
    most = Math.max(Number.MIN_VALUE, ...items.map((it) => it.share));
  const text = (title, width, value, show) => ({ title, width, value, show: show ?? ((it) => code(value(it))) });
  const columns = [
    text("kernel", "minmax(9rem, 1.4fr)", (it) => it.name),
    text("program", "minmax(6rem, 0.7fr)", (it) => it.module),
    text(
      "equations",
      "minmax(9rem, 1.4fr)",
      (it) => it.labels,
      (it) => [it.inserted && h("span", { class: "badge first" }, "put in"), code(it.labels)],
    ),
    text(
      "line",
      "minmax(7rem, 1fr)",
      (it) => it.line.title,
      (it) => [
        swatch(it.line),
        h(
          "button",
          {
            class: "link",
            title: it.line.text,
            click: (event) => (event.preventDefault(), app.set({ screen: "lines", pick: pickLine(it.line) })),
          },
          it.line.title,
        ),
      ],
    ),
    { title: "runs", width: "3.6rem", number: true, value: (it) => it.runs, show: (it) => format.count(it.runs) },
    { title: "each", width: "4.8rem", number: true, value: (it) => it.each, show: (it) => format.seconds(it.each) },
    {
      title: "time",
      width: "4.8rem",
      number: true,
      value: (it) => it.seconds,
      show: (it) => format.seconds(it.seconds),
    },
    {
      title: "share",
      width: "7rem",
      number: true,
      value: (it) => it.share,
      show: (it) => [bar(it.share / most), format.percent(it.share)],
    },
  ].filter((it) => it.title !== "program" || programs.length > 1);
  return new Grid({
    label: "Kernels",
    columns,
    items,
    sort: [columns.length - 1, true],
    enter: (it) => app.select(pickKernel(it)),
    paint: (element, it) => app.light(element, it.line, app.isLit(it)),
  });
}

const code = (text) => h("code", { title: text }, text);
