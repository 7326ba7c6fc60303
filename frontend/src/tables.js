// The description of the screens: what each is about, and the columns of its tables. The texts of `report.text` have the same.

import described from "../../xlamini/inspection/assets/screens.json" with { type: "json" };
import { h } from "./dom.js";
import * as format from "./format.js";
import { bar, plain } from "./grid.js";

/** The name and title of a screen, and what it is about. */
export function about(id) {
  const it = described[id];
  return { id, title: it.title, about: [it.about, it.page].filter(Boolean).join(" ") };
}

/** What a table says in place of no rows, or above them. */
export const none = (screen, table) => described[screen].tables[table].none;
export const title = (screen, table) => described[screen].tables[table].title;

const SHOWN = {
  bytes: format.bytes,
  count: format.count,
  integer: format.count,
  seconds: format.seconds,
  number: format.number,
  share: format.percent,
  amount: String,
};
const WIDTHS = {
  code: "minmax(9rem, 1.4fr)",
  place: "minmax(7rem, 1fr)",
  kernel: "minmax(9rem, 1fr)",
  bytes: "5.5rem",
  count: "4.5rem",
  integer: "4rem",
  seconds: "5.5rem",
  number: "5.5rem",
  share: "5rem",
  amount: "minmax(7rem, 0.8fr)",
};

/**
 * The columns of a table for `Grid`, each with its `field`. `special` changes some, by field; those in `without` are
 * left out; `kernels` are those that the values of a column are indices of.
 */
export function columns(app, screen, table, { special = {}, without = [], kernels = [] } = {}) {
  return described[screen].tables[table].columns
    .filter((it) => it.on !== "text" && !without.includes(it.field))
    .map((it) => ({ ...column(app.model, it, kernels), ...special[it.field] }));
}

const part = (item, field) => field.split(".").reduce((it, name) => it?.[name], item);

/** Those of some fields that no item has. */
export const lacking = (items, fields) => fields.filter((field) => !items.some((item) => part(item, field)));

/** The first order of a table in a grid: by the number of the column, the largest first. */
export function order(screen, table, columns) {
  const fields = described[screen].tables[table].sort ?? [];
  const c = fields.map((field) => columns.findIndex((it) => it.field === field)).find((c) => c >= 0);
  return c === undefined ? null : [c, true];
}

function column(model, { title, field, about, width, unit = "text", words, usual, none, bar: drawn }, kernels) {
  const value = (item) => part(item, field),
    empty = (it) => it === null || it === undefined || it === usual || it.length === 0;
  const name = {
    place: (row) => model.where(row) || model.eq.label[row],
    label: (row) => model.eq.label[row],
    kernel: (k) => kernels[k]?.name,
  }[unit];
  const text = (item) => {
    const it = value(item);
    if (empty(it)) return none ?? (SHOWN[unit] ? "–" : "");
    if (words) return words[Number(it)];
    if (SHOWN[unit]) return SHOWN[unit](it);
    const names = [...new Set([it].flat().map(name ?? String))];
    return names.length > 2 ? `${names[0]} +${names.length - 1}` : names.join(", ");
  };
  const show = {
    code: (item) => h("code", { title: text(item) }, text(item)),
    share: (item) => [drawn && bar(value(item)), text(item)],
  };
  return {
    title,
    field,
    about,
    width: width ?? WIDTHS[unit] ?? "minmax(7rem, 1fr)",
    number: unit in SHOWN,
    value: unit in SHOWN ? value : text,
    show: show[unit] ?? text,
  };
}

/** A small table; `columns` are as for `Grid`. */
export const plainTable = (label, columns, items) =>
  plain(
    label,
    columns.map((it) => it.title),
    items.map((item) => columns.map((it) => it.show(item))),
    columns.flatMap((it, c) => (it.number ? [c] : [])),
  );
