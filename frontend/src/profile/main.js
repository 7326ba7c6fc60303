// Opens the profile that is in the page.

import { h, put } from "../dom.js";
import { colourPage } from "../theme.js";
import { unpack } from "../unpack.js";
import { App } from "./app.js";
import { build, checked } from "./model.js";

const root = document.getElementById("app");

async function start() {
  const content = checked(await unpack(document.getElementById("report").textContent));
  document.title = `${content.name} · xlamini profile`;
  globalThis.profiler = new App(build(content), root);
}

colourPage();
start().catch((error) => {
  put(
    root,
    h("p", { class: "missing", role: "alert" }, h("strong", null, "This profile cannot be shown: "), error.message),
  );
  console.error(error);
});
