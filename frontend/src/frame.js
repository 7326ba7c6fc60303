// The frame of a page: names of the screens, the head, the screen itself, and the foot. A page says what is on them.

import { h, put } from "./dom.js";
import { fromFragment, toFragment } from "./state.js";

/**
 * The running page: the model, the state, and how to change it. A page has `screens`, `defaults` (its state, whose names
 * are kept in the address), `redraws` (names whose change draws the screen anew), `valid(state)`, `choose()`, which
 * makes the choice of `state.pick`, `dock`, and `head()`.
 */
export class Frame {
  constructor(model, root) {
    Object.assign(this, { model, root, view: null });
  }

  /** Begins with the state in the address. */
  start() {
    this.state = this.valid(fromFragment(location.hash, this.defaults));
    this.choose();
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

  /** Chooses a thing everywhere: `select("row:3")`; null chooses nothing. */
  select(pick, changes = {}) {
    this.set({ pick, ...changes });
  }

  write(push) {
    const fragment = toFragment(this.state, this.defaults);
    try {
      history[push ? "pushState" : "replaceState"](null, "", fragment);
    } catch {
      location.replace(fragment); // a notebook's frame may refuse the history
    }
  }

  follow() {
    const before = this.state;
    this.state = this.valid(fromFragment(location.hash, this.defaults));
    this.choose();
    this.redraw(new Set(Object.keys(this.state).filter((name) => before[name] !== this.state[name])));
  }

  redraw(changed) {
    this.dock.show(); // first, because its height decides what of a list is in sight
    if (this.redraws.some((name) => changed.has(name)) || !this.view?.changed?.(changed)) return this.show();
    this.view.paint?.();
  }

  /** Draws the screen of the state from nothing. */
  show() {
    const screen = this.screens.find((it) => it.id === this.state.screen);
    this.view?.dispose?.();
    this.view = null;
    for (const tab of this.tabs) tab.setAttribute("aria-current", tab.dataset.screen === screen.id ? "page" : "false");
    const body = h("div", { class: `body ${screen.id}` });
    const why = screen.missing?.(this);
    put(
      this.main,
      h("header", { class: "screen-head" }, h("h1", null, screen.title), h("p", { class: "about" }, screen.about)),
      body,
    );
    this.dock.show();
    if (why) put(body, this.missing(why));
    else this.view = screen.draw(this, body) ?? {};
    this.view?.paint?.();
    if (document.activeElement === document.body) this.main.focus({ preventScroll: true });
  }

  missing(why) {
    return h("p", { class: "missing", role: "note" }, why);
  }

  /** Puts the parts on the page; `rest` are dialogs. */
  frame(...rest) {
    this.tabs = this.screens.map((screen, i) =>
      h(
        "button",
        { class: "tab", "data-screen": screen.id, click: () => this.set({ screen: screen.id, tab: null }) },
        h("span", { class: "tab-number", "aria-hidden": "true" }, i + 1),
        screen.title,
      ),
    );
    this.main = h("main", { id: "main", tabindex: -1 });
    put(
      this.root,
      h("header", { class: "bar" }, this.head()),
      h("nav", { class: "tabs", "aria-label": "Screens" }, this.tabs),
      this.main,
      this.dock.element,
      rest,
    );
  }
}

/** The beginning of the head: whose page it is, and of what program; `made` are the versions that made it. */
export const named = (page, name, made) => [
  h("span", { class: "brand" }, "xlamini", h("span", { class: "brand-thin" }, page)),
  h(
    "span",
    {
      class: "program-name",
      title: Object.entries(made ?? {})
        .map(([part, version]) => `${part} ${version}`)
        .join(" · "),
    },
    name,
  ),
];

/** Says that the file holds text of the user; `how` leaves it out. */
export const notice = (how) =>
  h(
    "span",
    { class: "notice", title: `Whoever gets this file can read the source lines in it.${how}` },
    "contains source code",
  );
