// A list of any length of which only the lines in sight are elements.

import { css, h } from "./dom.js";

const OVERSCAN = 12;

/**
 * A list of `count` lines of one height. `draw(i)` makes a line, `paint(element, i)` colours it again when the selection changes,
 * `enter(i)` is a click or Enter, `hover(i | null)` the pointer; `fold(i, open)` the right and left arrow.
 */
export class VirtualList {
  constructor({ count, height = 20, label, role = "listbox", item = "option", draw, paint, enter, hover, fold }) {
    Object.assign(this, {
      count,
      height,
      draw,
      paint,
      enter,
      hover,
      fold,
      item,
      first: 0,
      cursor: -1,
      shown: new Map(),
    });
    this.id = `list${VirtualList.made++}`;
    this.window = h("div", { class: "v-window", role: "presentation" });
    this.spacer = h("div", { class: "v-spacer", role: "presentation" }, this.window);
    this.element = h(
      "div",
      {
        class: "v-list",
        role,
        tabindex: 0,
        "aria-label": label,
        scroll: () => this.update(),
        keydown: (event) => this.key(event),
        click: (event) => this.click(event),
        mouseover: (event) => this.point(event),
        mouseleave: () => this.hover?.(null),
      },
      this.spacer,
    );
    this.observer = new ResizeObserver(() => this.update());
    this.observer.observe(this.element);
    this.resize(count);
  }

  /** Draws everything again, with a new number of lines. */
  resize(count) {
    this.count = count;
    css(this.spacer, { height: `${count * this.height}px` });
    this.shown.clear();
    this.window.replaceChildren();
    this.update();
  }

  update() {
    const room = this.element.clientHeight || 600;
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.height) - OVERSCAN);
    const last = Math.min(this.count, first + Math.ceil(room / this.height) + 2 * OVERSCAN);
    for (const [i, line] of this.shown) {
      if (i < first || i >= last) {
        line.remove();
        this.shown.delete(i);
      }
    }
    const kept = [...this.shown.keys()];
    const from = kept.length ? Math.min(...kept) : last;
    this.window.prepend(...this.lines(first, from));
    if (kept.length) this.window.append(...this.lines(Math.max(...kept) + 1, last));
    css(this.window, { transform: `translateY(${first * this.height}px)` });
    this.first = first;
  }

  lines(from, to) {
    const out = [];
    for (let i = from; i < to; i++) {
      const line = this.draw(i);
      line.classList.add("v-line");
      css(line, { height: `${this.height}px` });
      line.id = `${this.id}-${i}`;
      line.dataset.i = i;
      if (!line.hasAttribute("role")) line.setAttribute("role", this.item);
      if (this.item === "row") line.setAttribute("aria-rowindex", i + 2);
      else
        for (const [name, value] of [
          ["posinset", i + 1],
          ["setsize", this.count],
        ])
          line.setAttribute(`aria-${name}`, value);
      line.classList.toggle("cursor", i === this.cursor);
      this.paint?.(line, i);
      this.shown.set(i, line);
      out.push(line);
    }
    return out;
  }

  /** Colours the lines in sight again. */
  repaint() {
    for (const [i, line] of this.shown) this.paint?.(line, i);
  }

  /** Makes line i visible: where it is if it is in sight already, otherwise a third from the top. */
  reveal(i) {
    const top = i * this.height,
      room = this.element.clientHeight;
    if (top < this.element.scrollTop || top + this.height > this.element.scrollTop + room) {
      this.element.scrollTop = Math.max(0, top - room / 3);
    }
    this.update();
  }

  moveTo(i) {
    this.cursor = Math.max(0, Math.min(this.count - 1, i));
    this.reveal(this.cursor);
    for (const [at, line] of this.shown) line.classList.toggle("cursor", at === this.cursor);
    this.element.setAttribute("aria-activedescendant", `${this.id}-${this.cursor}`);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) this.moveTo((this.cursor < 0 ? this.first : this.cursor) + steps[event.key]);
    else if (event.key === "Enter" && event.target === this.element && this.cursor >= 0) this.enter?.(this.cursor);
    else if (event.key === "ArrowRight" && this.fold && this.cursor >= 0) this.fold(this.cursor, true);
    else if (event.key === "ArrowLeft" && this.fold && this.cursor >= 0) this.fold(this.cursor, false);
    else return;
    event.preventDefault();
  }

  click(event) {
    const i = this.at(event);
    if (i === null || event.defaultPrevented || String(getSelection())) return;
    this.moveTo(i);
    this.enter?.(i);
  }

  point(event) {
    const i = this.at(event);
    if (i !== null) this.hover?.(i);
  }

  at(event) {
    const line = event.target.closest?.(".v-line");
    return line ? Number(line.dataset.i) : null;
  }

  dispose() {
    this.observer.disconnect();
  }
}
VirtualList.made = 0;
