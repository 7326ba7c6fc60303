// A table of any length: a head that sorts, and lines that may unfold.

import { css, h, put } from "./dom.js";
import { VirtualList } from "./virtual.js";

/**
 * `columns`: [{title, width, value(item), show(item), number}]; `value` sorts, `show` gives children (default: the value as text).
 * `inside(item)` gives the lines under an item when it is unfolded, as {key, draw()} objects.
 */
export class Grid {
  constructor({ label, columns, items, sort = null, enter, hover, paint, inside, height = 24 }) {
    Object.assign(this, { columns, items, inside, enterItem: enter, paintItem: paint, open: new Set(), sort });
    this.template = columns.map((column) => column.width).join(" ");
    this.head = h(
      "div",
      { class: "grid-head", role: "row", css: { "grid-template-columns": this.template } },
      columns.map((column, c) => this.heading(column, c)),
    );
    this.list = new VirtualList({
      count: 0,
      height,
      label,
      role: "rowgroup",
      item: "row",
      draw: (i) => this.draw(this.shown[i]),
      paint: (element, i) => this.paintItem?.(element, this.shown[i].item, this.shown[i].under),
      enter: (i) => this.enter(this.shown[i]),
      hover: hover && ((i) => hover(i === null ? null : this.shown[i].item, i === null ? null : this.shown[i].under)),
      fold: inside && ((i, open) => this.unfold(this.shown[i].item, open)),
    });
    this.element = h("div", { class: "grid", role: "table", "aria-label": label }, this.head, this.list.element);
    this.arrange();
  }

  heading(column, c) {
    const sort = () => this.sortBy(c);
    return h(
      "span",
      { role: "columnheader", class: column.number ? "num" : "" },
      column.value ? h("button", { title: column.about, click: sort }, column.title) : column.title,
    );
  }

  sortBy(c) {
    const down = this.sort?.[0] === c ? !this.sort[1] : Boolean(this.columns[c].number);
    this.sort = [c, down];
    this.arrange();
  }

  /** Sorts and draws again; `items` are the new items, if given. */
  arrange(items = this.items) {
    this.items = items;
    const sorted = [...items];
    if (this.sort) {
      const [c, down] = this.sort,
        { value } = this.columns[c];
      sorted.sort((a, b) => compare(value(a), value(b)) * (down ? -1 : 1));
    }
    this.shown = sorted.flatMap((item) => [
      { item },
      ...(this.open.has(item) ? this.inside(item).map((under) => ({ item, under })) : []),
    ]);
    [...this.head.children].forEach((cell, c) =>
      cell.setAttribute("aria-sort", this.sort?.[0] === c ? (this.sort[1] ? "descending" : "ascending") : "none"),
    );
    this.element?.setAttribute("aria-rowcount", this.shown.length + 1);
    this.list.resize(this.shown.length);
  }

  draw({ item, under }) {
    if (under) return h("div", { class: "grid-line under", role: "row" }, under.draw());
    const line = h(
      "div",
      { class: "grid-line", role: "row" },
      this.columns.map((column, c) =>
        h(
          "span",
          { role: "cell", class: column.number ? "num" : "" },
          c === 0 && this.inside && this.twisty(item),
          column.show ? column.show(item) : String(column.value(item) ?? ""),
        ),
      ),
    );
    return css(line, { "grid-template-columns": this.template });
  }

  twisty(item) {
    const open = this.open.has(item);
    return h(
      "button",
      {
        class: "twisty",
        tabindex: -1,
        "aria-expanded": String(open),
        "aria-label": open ? "Fold" : "Unfold",
        click: (event) => (event.preventDefault(), this.unfold(item, !open)),
      },
      open ? "▾" : "▸",
    );
  }

  unfold(item, open) {
    if (this.open.has(item) === open) return;
    this.open[open ? "add" : "delete"](item);
    const { cursor } = this.list;
    this.arrange();
    if (cursor >= 0) this.list.moveTo(cursor);
  }

  enter({ item, under }) {
    this.enterItem?.(item, under);
  }

  /** Makes an item visible. */
  reveal(item) {
    const i = this.shown.findIndex((it) => it.item === item);
    if (i >= 0) this.list.reveal(i);
  }

  repaint() {
    this.list.repaint();
  }

  dispose() {
    this.list.dispose();
  }
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return typeof a === "string" ? a.localeCompare(b) : a - b;
}

/** A small table of texts: rows are arrays of children; numbers of columns in `numeric` are set flush right. */
export function plain(label, heads, rows, numeric = []) {
  const side = (c) => (numeric.includes(c) ? "num" : "");
  return put(
    h("table", { class: "plain", "aria-label": label }),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        heads.map((head, c) => h(head ? "th" : "td", { scope: head ? "col" : null, class: side(c) }, head)),
      ),
    ),
    h(
      "tbody",
      null,
      rows.map((row) =>
        h(
          "tr",
          null,
          row.map((cell, c) =>
            h(
              c ? "td" : "th",
              {
                class: side(c),
                scope: c ? null : "row",
                colspan: c === row.length - 1 && row.length < heads.length ? heads.length - c : null,
              },
              cell,
            ),
          ),
        ),
      ),
    ),
  );
}

/** A bar for a share from 0 to 1. */
export function bar(share, kind = "") {
  return h(
    "span",
    { class: `share ${kind}`, "aria-hidden": "true" },
    css(h("i"), { width: `${Math.max(0, Math.min(1, share || 0)) * 100}%` }),
  );
}

/** Buttons of which one is pressed: options are [value, title]. */
export function switcher(label, options, value, choose) {
  return h(
    "span",
    { class: "switch", role: "group", "aria-label": label },
    options.map(([it, title]) => h("button", { "aria-pressed": String(it === value), click: () => choose(it) }, title)),
  );
}

/** A check box with its words. */
export function check(text, on, change) {
  const box = h("input", { type: "checkbox", change: () => change(box.checked) });
  box.checked = on;
  return h("label", { class: "check" }, box, text);
}
