// The list of keys.

import { h } from "./dom.js";

const KEYS = [
  ["/", "search: text, line:12, function:loss, primitive:tanh, scope:model"],
  ["[  ]", "previous, next stage"],
  ["j  k", "next, previous equation"],
  ["s", "source beside the stage"],
  ["g", "neighbourhood of the equation"],
  ["Esc", "choose nothing; close a dialog"],
  ["↑  ↓  Enter", "in a list: move, choose"],
  ["←  →", "in a list: fold, unfold"],
  ["?", "this list"],
];

const ABOUT =
  "What you choose on one screen is chosen on all. The address keeps the screen, stage, target and choice, so a link points at one finding.";

/** Opens the list of keys as a dialog: pairs of keys and what they do. */
export function openHelp(app, keys = KEYS, about = ABOUT) {
  const close = h("button", { class: "button", click: () => dialog.close() }, "Close");
  const dialog = h(
    "dialog",
    { class: "dialog", "aria-label": "Keys", close: () => dialog.remove() },
    h("h2", null, "Keys"),
    h(
      "dl",
      { class: "keys" },
      keys.map(([key, what]) => [
        h(
          "dt",
          null,
          key.split("  ").map((k) => h("kbd", null, k)),
        ),
        h("dd", null, what),
      ]),
    ),
    h("p", { class: "soft" }, about),
    close,
  );
  app.root.append(dialog);
  dialog.showModal();
}
