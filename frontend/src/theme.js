// Light and dark: the system's choice until the switch is used.

import { h } from "./dom.js";

const NEXT = { auto: "light", light: "dark", dark: "auto" };
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };
const KEY = "xlamini-inspect-theme";

const system = globalThis.matchMedia?.("(prefers-color-scheme: dark)");

/** Tells the style sheet whether colours are light or dark. */
export function colourPage(theme = stored()) {
  const auto = system.matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme === "auto" ? auto : theme;
}

/** The switch; it calls for a new drawing, because plots take their colours from the style. */
export function themeButton(app) {
  let theme = stored();
  const button = h("button", { class: "quiet", id: "theme", click: () => choose(NEXT[theme]) });
  const name = () => {
    button.textContent = SIGNS[theme];
    button.title = `Colours: ${theme}`;
    button.setAttribute("aria-label", button.title);
  };
  const show = () => {
    colourPage(theme);
    app.show();
  };
  const choose = (next) => {
    store((theme = next));
    name();
    show();
  };
  name();
  system.addEventListener("change", show);
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
