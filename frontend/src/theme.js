// Light and dark: the system's choice until the switch is used.

import { h } from "./dom.js";

const NEXT = { auto: "light", light: "dark", dark: "auto" };
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };
const KEY = "xlamini-inspect-theme";

/** The switch; it calls for a new drawing, because plots take their colours from the style. */
export function themeButton(app) {
  const button = h("button", {
    class: "quiet",
    id: "theme",
    click: () => apply(NEXT[document.documentElement.dataset.theme]),
  });
  const apply = (theme, drawn = true) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = SIGNS[theme];
    button.setAttribute("aria-label", `Colours: ${theme}`);
    button.title = `Colours: ${theme}`;
    store(theme);
    if (drawn) app.show();
  };
  apply(stored(), false);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.show());
  return button;
}

function stored() {
  try {
    return NEXT[localStorage.getItem(KEY)] ? localStorage.getItem(KEY) : "auto";
  } catch {
    return "auto"; // a notebook's frame has no storage
  }
}

function store(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return; // the choice lasts as long as the page
  }
}

/** The value of a colour of the style sheet, for canvases. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
