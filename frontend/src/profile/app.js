// The page of a profile: its screens, and what is chosen on all of them.

import { h } from "../dom.js";
import { Frame, named, notice } from "../frame.js";
import { openHelp } from "../help.js";
import { keys } from "../keys.js";
import { themeButton } from "../theme.js";
import { Dock } from "./dock.js";
import { pickLine, resolve } from "./model.js";
import { SCREENS } from "./screens/index.js";

const DEFAULTS = { screen: "overview", pick: null };
const HELP = [
  ["j  k", "the line that took next less, next more"],
  ["l", "lines"],
  ["n", "kernels"],
  ["t", "timeline"],
  ["f", "flame graph"],
  ["Esc", "choose nothing; close a dialog"],
  ["↑  ↓  Enter", "in a list: move, choose"],
  ["+  −  ←  →", "on the timeline: zoom, move; 0 shows all, Home one call, , and . the run before and after"],
  ["?", "this list"],
];
const ABOUT =
  "What you choose on one screen is chosen on all. The address keeps the screen and the choice, so a link points at one finding.";

/** The running page of a profile. */
export class App extends Frame {
  constructor(model, root) {
    super(model, root);
    Object.assign(this, { screens: SCREENS, defaults: DEFAULTS, redraws: ["screen"], hot: null });
    this.start();
    this.dock = new Dock(this);
    this.frame();
    this.show();
    addEventListener("hashchange", () => this.follow());
    addEventListener("keydown", (event) => keys(this, event, ACTIONS));
  }

  valid(state) {
    if (!SCREENS.some((screen) => screen.id === state.screen)) state.screen = "overview";
    if (!resolve(this.model, state.pick)) state.pick = null;
    return state;
  }

  choose() {
    this.choice = resolve(this.model, this.state.pick);
    this.hot = null;
  }

  /** Lights a line while the pointer is on it. */
  hover(line) {
    this.hot = line;
    this.view?.paint?.();
  }

  isLit(kernel) {
    return Boolean(this.choice?.kernels.has(kernel.i));
  }

  /** Colours an element of a line. */
  light(element, line, isLit = this.choice?.lines.has(line?.i)) {
    element.classList.toggle("lit", Boolean(isLit));
    element.classList.toggle("hot", Boolean(line) && this.hot === line);
    element.setAttribute("aria-selected", String(Boolean(isLit)));
  }

  /** The next line in the order of time. */
  step(by) {
    const order = [...this.model.lines].sort((a, b) => b.seconds - a.seconds || b.waited - a.waited);
    const at = order.indexOf(this.choice?.line);
    const next = order[at < 0 ? (by > 0 ? 0 : order.length - 1) : at + by];
    if (next) this.select(pickLine(next));
  }

  head() {
    const { content, files } = this.model;
    return [
      named("profile", content.name, content.made_with),
      files.some((file) => file.texts.length) && notice(""),
      h("span", { class: "gap" }),
      themeButton(this),
      h("button", { class: "quiet", click: () => help(this), "aria-label": "Help", "aria-keyshortcuts": "?" }, "?"),
    ];
  }
}

const help = (app) => openHelp(app, HELP, ABOUT);

const ACTIONS = {
  "?": help,
  j: (app) => app.step(1),
  k: (app) => app.step(-1),
  l: (app) => app.set({ screen: "lines" }),
  n: (app) => app.set({ screen: "kernels" }),
  t: (app) => app.set({ screen: "timeline" }),
  f: (app) => app.set({ screen: "flame" }),
  Escape: (app) => app.select(null),
};
