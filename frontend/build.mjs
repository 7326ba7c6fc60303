// Bundles the page into one file that the Python package carries. `--check` compares the committed file with what the sources give.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const PAGE = new URL("../xlamini/inspection/assets/page.html", import.meta.url);
const LARGEST = 250_000;
const SLOTS = ["@@REPORT@@", "@@OTHER@@"];
const LIBRARIES = ["uplot", "@dagrejs/dagre", "@dagrejs/graphlib", "diff"];

const here = (path) => new URL(path, import.meta.url);

async function bundled(entry, options) {
  const result = await build({
    entryPoints: [fileURLToPath(here(entry))],
    bundle: true,
    minify: true,
    write: false,
    charset: "utf8",
    legalComments: "none",
    ...options,
  });
  return result.outputFiles[0].text.trim();
}

const hashed = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** What the licences of the libraries ask to be kept, once for each text. */
async function licences() {
  const texts = new Map();
  for (const name of LIBRARIES) {
    const text = (await readFile(here(`node_modules/${name}/LICENSE`), "utf8"))
      .replace(/\r/g, "")
      .trim()
      .replaceAll("--", "- -");
    texts.set(text, [...(texts.get(text) ?? []), name]);
  }
  return [...texts].map(([text, names]) => `${names.join(", ")}\n\n${text}`).join("\n\n\n");
}

async function page() {
  const script = await bundled("src/main.js", { format: "iife", target: "es2022" });
  const style = await bundled("src/style/page.css", {});
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error("a closing tag in the bundle");
  const policy = `default-src 'none'; script-src ${hashed(script)}; style-src ${hashed(style)}; base-uri 'none'; form-action 'none'`;
  const slots = { POLICY: policy, STYLE: style, SCRIPT: script, LICENCES: await licences() };
  const template = await readFile(here("src/template.html"), "utf8");
  return template.replace(/@@(POLICY|STYLE|SCRIPT|LICENCES)@@/g, (_, slot) => slots[slot]);
}

async function check(text) {
  const committed = await readFile(PAGE, "utf8").catch(() => "");
  if (committed !== text)
    throw new Error(
      "xlamini/inspection/assets/page.html is not what the sources in frontend/ give: run `npm run build` there.",
    );
  console.log("the committed page is what the sources give");
}

const text = await page();
const size = Buffer.byteLength(text);
if (size >= LARGEST) throw new Error(`the page has ${size} bytes, the limit is ${LARGEST}`);
for (const slot of SLOTS) if (text.split(slot).length !== 2) throw new Error(`${slot} must occur once`);
if (process.argv.includes("--check")) await check(text);
else await writeFile(PAGE, text);
console.log(`${size} bytes`);
