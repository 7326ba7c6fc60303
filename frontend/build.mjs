// Bundles the page into one file that the Python package carries. `--check` compares the committed file with what the sources give.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";

const PAGE = new URL("../xlamini/inspection/assets/page.html", import.meta.url);
const LARGEST = 250_000;
const SLOTS = ["@@REPORT@@", "@@OTHER@@"];

const bundled = async (entry, options) => {
  const result = await build({ entryPoints: [new URL(entry, import.meta.url).pathname], bundle: true, minify: true, write: false, charset: "utf8", legalComments: "none", ...options });
  return result.outputFiles[0].text.trim();
};

const hashed = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

async function page() {
  const script = await bundled("src/main.js", { format: "iife", target: "es2022" });
  const style = await bundled("src/style/page.css", {});
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error("a closing tag in the bundle");
  const policy = `default-src 'none'; script-src ${hashed(script)}; style-src ${hashed(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
  const slots = { "@@POLICY@@": policy, "@@STYLE@@": style, "@@SCRIPT@@": script };
  const template = await readFile(new URL("src/template.html", import.meta.url), "utf8");
  return template.replace(/@@(POLICY|STYLE|SCRIPT)@@/g, (slot) => slots[slot]);
}

const text = await page();
const size = Buffer.byteLength(text);
if (size >= LARGEST) throw new Error(`the page has ${size} bytes, the limit is ${LARGEST}`);
for (const slot of SLOTS) if (text.split(slot).length !== 2) throw new Error(`${slot} must occur once`);
if (process.argv.includes("--check")) {
  const committed = await readFile(PAGE, "utf8").catch(() => "");
  if (committed !== text) {
    console.error("xlamini/inspection/assets/page.html is not what the sources in frontend/ give: run `npm run build` there.");
    process.exit(1);
  }
  console.log(`the committed page is what the sources give (${size} bytes)`);
} else {
  await writeFile(PAGE, text);
  console.log(`${size} bytes`);
}
