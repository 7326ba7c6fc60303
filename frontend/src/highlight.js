// Colours for a line of a program: a few classes of words, found by one expression for each language. Only lines in sight are coloured.

import { h } from "./dom.js";

const PYTHON =
  /(#.*$)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|\b(def|class|return|for|in|if|else|elif|while|with|as|import|from|lambda|not|and|or|is|None|True|False|pass|raise|yield|assert|try|except|finally|global|nonlocal|del|break|continue|async|await)\b|(@[\w.]+)|\b(\d[\w.]*)/g;
const PROGRAM =
  /(\/\/.*$|^\s*;.*$)|("(?:[^"\\]|\\.)*"?)|\b(lambda|let|in|ENTRY|ROOT|HloModule|module|func\.func|return|func|call|define|declare)\b|((?:tensor<[^>]*>+|\b(?:[fsuc]\d+|bf16|pred|i\d+|f8\w*|b1|bool|key)\[[^\]]*\](?:\{[^}]*\})?))|((?<== )[a-z_][\w.-]*(?=[[ ]|$)|(?<![%@\w.])[a-z_][\w.-]*(?=\())|(%[\w.-]+)/g;
const PYTHON_CLASSES = ["t-comment", "t-text", "t-word", "t-name", "t-number"];
const PROGRAM_CLASSES = ["t-comment", "t-text", "t-word", "t-type", "t-op", "t-name"];
const LONGEST = 4000;

/** Children for one line of Python. */
export const python = (line) => coloured(line, PYTHON, PYTHON_CLASSES);

/** Children for one line of a jaxpr, of StableHLO, HLO or assembly. */
export const program = (line) => coloured(line, PROGRAM, PROGRAM_CLASSES);

/** HLO without what only tools read. */
export const withoutMetadata = (line) =>
  line
    .replace(/,? metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\}/, "")
    .replace(/ loc\((?:[^()"]|"[^"]*"|\([^()]*\))*\)$/, "");

function coloured(line, expression, classes) {
  if (line.length > LONGEST) return [`${line.slice(0, LONGEST)} …`];
  const out = [];
  let at = 0;
  for (const match of line.matchAll(expression)) {
    const which = match.slice(1).findIndex((part) => part !== undefined);
    if (which < 0 || !match[0]) continue;
    if (match.index > at) out.push(line.slice(at, match.index));
    out.push(h("span", { class: classes[which] }, match[0]));
    at = match.index + match[0].length;
  }
  if (at < line.length) out.push(line.slice(at));
  return out;
}
