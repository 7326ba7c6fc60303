// A second report, dropped on the page or chosen, for the screen Diff.

import { fromFile } from "./decode.js";
import { build } from "./model.js";

/** Lets a report be dropped anywhere. */
export function loadingOf(app) {
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) load(app, event.dataTransfer.files[0]);
  });
}

/** Reads a file as the other report of the diff; what is wrong with it is shown there. */
export async function load(app, file) {
  try {
    app.other = build(await fromFile(await file.text()));
    app.otherName = file.name;
    app.loadError = null;
  } catch (error) {
    app.loadError = `${file.name}: ${error.message}`;
  }
  if (app.state.screen === "diff") app.show();
  else app.set({ screen: "diff" });
}
