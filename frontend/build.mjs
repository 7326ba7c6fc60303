// Bundles each page into one file that the Python package carries. `--check` compares the committed files with what the sources give.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const ASSETS = "xlamini/inspection/assets";
const LARGEST = 250_000;
const SLOTS = ["@@REPORT@@", "@@OTHER@@"];
const PAGES = [
  {
    asset: "page.html",
    name: "inspect",
    script: "src/main.js",
    style: "src/style/page.css",
    libraries: ["uplot", "@dagrejs/dagre", "@dagrejs/graphlib", "diff"],
  },
  {
    asset: "profile.html",
    name: "profile",
    script: "src/profile/main.js",
    style: "src/style/profile.css",
    libraries: [],
  },
];

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
async function licences(libraries) {
  const texts = new Map();
  for (const name of libraries) {
    const text = (await readFile(here(`node_modules/${name}/LICENSE`), "utf8"))
      .replace(/\r/g, "")
      .trim()
      .replaceAll("--", "- -");
    texts.set(text, [...(texts.get(text) ?? []), name]);
  }
  const all = [...texts].map(([text, names]) => `${names.join(", ")}\n\n${text}`).join("\n\n\n");
  return all && ` It contains these libraries:\n\n${all}\n`;
}

async function html({ name, script: entry, style: sheet, libraries }) {
  const script = await bundled(entry, { format: "iife", target: "es2022" });
  const style = await bundled(sheet, {});
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error("a closing tag in the bundle");
  const policy = `default-src 'none'; script-src ${hashed(script)}; style-src ${hashed(style)}; base-uri 'none'; form-action 'none'`;
  const slots = { NAME: name, POLICY: policy, STYLE: style, SCRIPT: script, LICENCES: await licences(libraries) };
  const template = await readFile(here("src/template.html"), "utf8");
  return template.replace(/@@(NAME|POLICY|STYLE|SCRIPT|LICENCES)@@/g, (_, slot) => slots[slot]);
}

async function check(file, text) {
  const committed = await readFile(here(`../${file}`), "utf8").catch(() => "");
  if (committed !== text)
    throw new Error(`${file} is not what the sources in frontend/ give: run \`npm run build\` there.`);
}

for (const page of PAGES) {
  const file = `${ASSETS}/${page.asset}`;
  const text = await html(page);
  const size = Buffer.byteLength(text);
  if (size >= LARGEST) throw new Error(`${file} has ${size} bytes, the limit is ${LARGEST}`);
  for (const slot of SLOTS) if (text.split(slot).length !== 2) throw new Error(`${slot} must occur once in ${file}`);
  if (process.argv.includes("--check")) await check(file, text);
  else await writeFile(here(`../${file}`), text);
  console.log(`${file}: ${size} bytes`);
}
