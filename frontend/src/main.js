// Opens the report that is in the page.

import { App } from "./app.js";
import { checked } from "./decode.js";
import { h, put } from "./dom.js";
import { build } from "./model.js";
import { colourPage } from "./theme.js";
import { unpack } from "./unpack.js";

const root = document.getElementById("app");

async function start() {
  const report = checked(await unpack(document.getElementById("report").textContent));
  const second = document.getElementById("other").textContent.trim();
  document.title = `${report.name} · xlamini inspect`;
  const other = second ? build(checked(await unpack(second))) : null;
  globalThis.inspector = new App(build(report), root, other);
}

colourPage();
start().catch((error) => {
  put(
    root,
    h("p", { class: "missing", role: "alert" }, h("strong", null, "This report cannot be shown: "), error.message),
  );
  console.error(error);
});
