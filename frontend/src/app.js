// The frame of the page: names of the screens, the head, the screen itself, and the dock with the thread of what is chosen.

import { put, h } from "./dom.js";
import { Dock } from "./dock.js";
import { openHelp } from "./help.js";
import { keys } from "./keys.js";
import { Search } from "./search.js";
import { SCREENS } from "./screens/index.js";
import { fromFragment, resolve, toFragment } from "./state.js";
import { themeButton } from "./theme.js";
import { loadingOf } from "./loading.js";

const REDRAWS = ["screen", "target"];

/** The running page: the model, the state, and how to change it. */
export class App {
  constructor(model, root, other = null) {
    Object.assign(this, { model, root, other, view: null, hot: new Set() });
    this.state = this.valid(fromFragment(location.hash));
    this.choose();
    this.dock = new Dock(this);
    this.search = new Search(this);
    this.frame();
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

  /** Changes the state: `set({screen: "memory"})`. A new screen is a new entry of the history. */
  set(changes) {
    const before = { ...this.state };
    Object.assign(this.state, changes);
    this.valid(this.state);
    const changed = new Set(Object.keys(this.state).filter((name) => before[name] !== this.state[name]));
    if (!changed.size) return;
    if (changed.has("pick")) this.choose();
    this.write(changed.has("screen"));
    this.redraw(changed);
  }

  /** Chooses an equation, a line, a kernel or a scope, everywhere: `select("row:3")`; null chooses nothing. */
  select(pick, changes = {}) {
    this.set({ pick, ...changes });
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

  write(push) {
    const fragment = toFragment(this.state);
    try {
      history[push ? "pushState" : "replaceState"](null, "", fragment);
    } catch {
      location.replace(fragment); // a notebook's frame may refuse the history
    }
  }

  follow() {
    const before = this.state;
    this.state = this.valid(fromFragment(location.hash));
    this.choose();
    this.redraw(new Set(Object.keys(this.state).filter((name) => before[name] !== this.state[name])));
  }

  redraw(changed) {
    this.dock.show(); // first, because its height decides what of a list is in sight
    if (REDRAWS.some((name) => changed.has(name)) || !this.view?.changed?.(changed)) return this.show();
    this.view.paint?.();
  }

  /** Draws the screen of the state from nothing. */
  show() {
    const screen = SCREENS.find((it) => it.id === this.state.screen);
    this.view?.dispose?.();
    this.view = null;
    for (const tab of this.tabs) tab.setAttribute("aria-current", tab.dataset.screen === screen.id ? "page" : "false");
    this.picker.value = this.state.target;
    this.picker.hidden = this.model.targets.length < 2;
    const body = h("div", { class: `body ${screen.id}` });
    const why = screen.missing?.(this);
    put(
      this.main,
      h("header", { class: "screen-head" }, h("h1", null, screen.title), h("p", { class: "about" }, screen.about)),
      body,
    );
    this.dock.show();
    if (why) put(body, missing(why));
    else this.view = screen.draw(this, body) ?? {};
    this.view?.paint?.();
    if (document.activeElement === document.body) this.main.focus({ preventScroll: true });
  }

  frame() {
    this.tabs = SCREENS.map((screen, i) =>
      h(
        "button",
        { class: "tab", "data-screen": screen.id, click: () => this.set({ screen: screen.id, tab: null }) },
        h("span", { class: "tab-number", "aria-hidden": "true" }, i + 1),
        screen.title,
      ),
    );
    this.picker = h(
      "select",
      { "aria-label": "Target", change: () => this.set({ target: Number(this.picker.value) }) },
      this.model.targets.map((target, i) => h("option", { value: i }, target.name)),
    );
    this.main = h("main", { id: "main", tabindex: -1 });
    put(
      this.root,
      this.head(),
      h("nav", { class: "tabs", "aria-label": "Screens" }, this.tabs),
      this.main,
      this.dock.element,
      this.search.element,
    );
  }

  head() {
    const { report } = this.model;
    const made = Object.entries(report.made_with ?? {})
      .map(([name, version]) => `${name} ${version}`)
      .join(" · ");
    return h(
      "header",
      { class: "bar" },
      h("span", { class: "brand" }, "xlamini", h("span", { class: "brand-thin" }, "inspect")),
      h("span", { class: "program-name", title: made }, report.name),
      this.model.sources.some((source) => source.lines) &&
        h(
          "span",
          {
            class: "notice",
            title:
              "Whoever gets this file can read the source lines in it. source=False (--no-source) leaves them out.",
          },
          "contains source code",
        ),
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
    );
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
