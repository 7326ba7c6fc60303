// The colour of a line, the same on all screens: the lines that took longest have one each.

import { h } from "../dom.js";
import { colour } from "../theme.js";

/** A square in the colour of a line. */
export const swatch = (line) => h("span", { class: `key ${tone(line)}`, "aria-hidden": "true" });

/** The class with the colour of a line. */
export const tone = (line) => `tone-${line.colour ?? "rest"}`;

/** The colours of the lines for a canvas. */
export function tones() {
  const found = new Map();
  return (line) => {
    const name = `tone-${line.colour ?? "rest"}`;
    if (!found.has(name)) found.set(name, colour(name));
    return found.get(name);
  };
}
