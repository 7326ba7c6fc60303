// The column of heat: a number over a bar whose length is the share of the greatest number.

import { css, h } from "./dom.js";

/** From a number to a length between 0 and 1. The root keeps small costs visible beside large ones. */
export function heatScale(numbers) {
  const most = numbers.reduce((a, b) => Math.max(a, b), 0);
  return (x) => (most > 0 ? Math.sqrt(Math.max(0, x) / most) : 0);
}

/** The cell for one number; empty for zero. */
export function gutter(value, scale, show) {
  if (!value) return h("span", { class: "heat" });
  return h(
    "span",
    { class: "heat", title: show(value) },
    css(h("i"), { width: `${scale(value) * 100}%` }),
    h("b", null, short(show(value))),
  );
}

/** "3.14 GFLOP" -> "3.14 G": the switch above names the unit. */
const short = (text) => text.replace(/ ?FLOP$/, "").replace(/iB$/, "");
