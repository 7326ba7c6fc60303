// Screen 11: what the values were, equation by equation.

import { h, put } from "../dom.js";
import * as format from "../format.js";
import { Grid, bar, check } from "../grid.js";
import { pickRow } from "../state.js";

const FAR = 1000;

export const values = {
  id: "values",
  title: "Values",
  about:
    "The least, greatest and mean value of each equation's result on the inputs that you gave, how many are NaN or infinite, and how far they are from the same program in float64. The first suspicious equation is where a NaN or an infinity first appears.",
  missing: (app) =>
    app.model.report.values?.length ? null : "xlamini records values only if you ask for them: inspect(f, values=True)",
  draw: (app, body) => new Values(app, body),
};

/** Whether a value has a NaN or an infinity, or is far from its float64 twin. */
export const suspicious = (it) => it.nan > 0 || it.inf > 0 || it.ulps > FAR;

class Values {
  constructor(app, body) {
    Object.assign(this, { app, all: app.model.report.values, only: false });
    const first = this.all.find((it) => it.nan > 0 || it.inf > 0);
    this.grid = new Grid({
      label: "Values",
      items: this.all,
      columns: columns(app),
      enter: (it) => app.select(pickRow(it.row)),
      hover: (it) => app.hover(it ? [it.row] : null),
      paint: (element, it) => {
        element.classList.toggle("lit", app.lit.has(it.row));
        element.classList.toggle("hot", app.hot.has(it.row));
        element.classList.toggle("suspicious", suspicious(it));
      },
    });
    put(
      body,
      h(
        "div",
        { class: "tools" },
        first
          ? h(
              "button",
              { class: "button", id: "first-bad", click: () => app.select(pickRow(first.row)) },
              `First NaN or infinity: ${app.model.where(first.row) || app.model.eq.label[first.row]}`,
            )
          : h("span", { class: "soft" }, "No value is NaN or infinite."),
        check("suspicious only", false, (on) => this.grid.arrange(on ? this.all.filter(suspicious) : this.all)),
      ),
      this.grid.element,
    );
    this.changed();
  }

  changed() {
    const item = this.grid.items.find((it) => this.app.lit.has(it.row));
    if (item) this.grid.reveal(item);
    return true;
  }

  paint() {
    this.grid.repaint();
  }

  dispose() {
    this.grid.dispose();
  }
}

function columns(app) {
  const { model } = app,
    bad = (n) => h("span", { class: n > 0 ? "bad" : "soft" }, format.count(n));
  const plain = (name) => ({
    title: name,
    width: "5.5rem",
    number: true,
    value: (it) => it[name],
    show: (it) => format.number(it[name]),
  });
  return [
    {
      title: "equation",
      width: "minmax(12rem, 2fr)",
      value: (it) => it.row,
      show: (it) => [
        h("code", null, model.eq.label[it.row]),
        it.iteration?.length > 0 && h("span", { class: "soft" }, ` iteration ${it.iteration.join(", ")}`),
      ],
    },
    { title: "line", width: "minmax(7rem, 1fr)", value: (it) => model.where(it.row) },
    plain("min"),
    plain("max"),
    plain("mean"),
    { title: "NaN", width: "4rem", number: true, value: (it) => it.nan, show: (it) => bad(it.nan) },
    { title: "inf", width: "4rem", number: true, value: (it) => it.inf, show: (it) => bad(it.inf) },
    {
      title: "zeros",
      width: "7rem",
      number: true,
      value: (it) => it.zeros,
      show: (it) => [bar(it.zeros), format.percent(it.zeros)],
    },
    {
      title: "from float64",
      about: "Distance to the same program in float64, in units in the last place",
      width: "6.5rem",
      number: true,
      value: (it) => it.ulps,
      show: (it) =>
        it.ulps === null ? "–" : h("span", { class: it.ulps > FAR ? "bad" : "" }, `${format.count(it.ulps)} ulp`),
    },
  ];
}
