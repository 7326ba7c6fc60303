// The page of `inspect`: its screens, and what is chosen on all of them.

import { h } from "./dom.js";
import { Dock } from "./dock.js";
import { Frame, named, notice } from "./frame.js";
import { openHelp } from "./help.js";
import { keys } from "./keys.js";
import { Search } from "./search.js";
import { SCREENS } from "./screens/index.js";
import { DEFAULTS, resolve } from "./state.js";
import { themeButton } from "./theme.js";
import { loadingOf } from "./loading.js";

/** The running page of a report; `other` is the report that the screen Diff compares it with. */
export class App extends Frame {
  constructor(model, root, other = null) {
    super(model, root);
    Object.assign(this, { other, screens: SCREENS, defaults: DEFAULTS, redraws: ["screen", "target"], hot: new Set() });
    this.start();
    this.dock = new Dock(this);
    this.search = new Search(this);
    this.frame(this.search.element);
    this.show();
    addEventListener("hashchange", () => this.follow());
    addEventListener("keydown", (event) => keys(this, event));
    loadingOf(this);
  }

  /** A state whose stage, target and screen exist. */
  valid(state) {
    const { model } = this;
    if (!SCREENS.some((screen) => screen.id === state.screen)) state.screen = "summary";
    if (state.target >= model.targets.length) state.target = 0;
    const stages = model.stagesFor(state.target);
    if (!stages.includes(state.stage)) state.stage = stages.includes(model.final) ? model.final : (stages[0] ?? null);
    if (!model.sources[state.source]) state.source = firstSource(model);
    return state;
  }

  /** Lights the equations of `rows`, and all that they came from or became, while the pointer is on them. */
  hover(rows) {
    this.hot = rows?.length ? this.model.lineage(rows) : new Set();
    this.view?.paint?.();
  }

  choose() {
    this.choice = resolve(this.model, this.state.pick);
    this.lit = this.choice ? this.model.lineage(this.choice.rows) : new Set();
    this.hot = new Set();
  }

  show() {
    this.picker.value = this.state.target;
    this.picker.hidden = this.model.targets.length < 2;
    super.show();
  }

  missing(why) {
    return missing(why);
  }

  head() {
    const { report, sources, targets } = this.model;
    this.picker = h(
      "select",
      { "aria-label": "Target", change: () => this.set({ target: Number(this.picker.value) }) },
      targets.map((target, i) => h("option", { value: i }, target.name)),
    );
    return [
      named("inspect", report.name, report.made_with),
      sources.some((source) => source.lines) && notice(" source=False (--no-source) leaves them out."),
      h("span", { class: "gap" }),
      this.picker,
      h(
        "button",
        { class: "quiet wide", click: () => this.search.open(), "aria-keyshortcuts": "/" },
        "Search",
        h("kbd", null, "/"),
      ),
      themeButton(this),
      h("button", { class: "quiet", click: () => openHelp(this), "aria-label": "Help", "aria-keyshortcuts": "?" }, "?"),
    ];
  }
}

const firstSource = (model) =>
  Math.max(
    0,
    model.sources.findIndex((source) => !source.library),
  );

/** What a screen shows in place of its data. */
export const missing = (why) =>
  h("p", { class: "missing", role: "note" }, h("strong", null, "Not available for this target: "), why);
