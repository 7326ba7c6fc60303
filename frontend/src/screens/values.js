// Screen 11: what the values were, equation by equation.

import { h, put } from "../dom.js";
import * as format from "../format.js";
import { Grid, check } from "../grid.js";
import { pickRow } from "../state.js";
import { about, columns, none } from "../tables.js";

const FAR = 1000;

export const values = {
  ...about("values"),
  missing: (app) => (app.model.report.values?.length ? null : none("values", "values")),
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
      columns: valueColumns(app),
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

function valueColumns(app) {
  const bad = (name) => ({ show: (it) => h("span", { class: it[name] > 0 ? "bad" : "soft" }, format.count(it[name])) });
  const far = (it) => h("span", { class: it.ulps > FAR ? "bad" : "" }, format.number(it.ulps));
  return columns(app, "values", "values", { special: { nan: bad("nan"), inf: bad("inf"), ulps: { show: far } } });
}
