// Search through equations, source lines and kernels. Every word must occur; `line:`, `function:`, `primitive:` and `scope:` look there only.

import { put, h } from "./dom.js";
import { base } from "./model.js";
import { pickKernel, pickLine, pickRow } from "./state.js";

const MOST = { equations: 60, lines: 12, kernels: 8 };
const FIELDS = {
  line: "line",
  function: "function",
  fn: "function",
  primitive: "primitive",
  prim: "primitive",
  scope: "scope",
};

/** Tests that a row must pass: [[field | null, word]]. */
export function terms(query) {
  return query
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => {
      const [field, rest] = word.split(/:(.*)/s);
      return FIELDS[field] && rest ? [FIELDS[field], rest] : [null, word];
    });
}

/** Rows of the table that a query finds, in `rows`. */
export function findRows(model, query, rows, most = Infinity) {
  const tests = terms(query),
    { eq } = model,
    out = [];
  for (const row of rows) {
    if (tests.every((test) => matches(model, eq, row, test)) && out.push(row) >= most) break;
  }
  return out;
}

function matches(model, eq, row, [field, word]) {
  if (field === "line") return String(eq.line[row]) === word || model.where(row).toLowerCase() === word;
  if (field === "function" || field === "scope") return (eq[field][row] ?? "").toLowerCase().includes(word);
  if (field === "primitive") return eq.primitive[row].toLowerCase() === word;
  return haystack(model, eq, row).includes(word);
}

function haystack(model, eq, row) {
  const all = (model.haystacks ??= []);
  const line = model.sources[eq.source[row]]?.lines?.[eq.line[row] - 1];
  all[row] ??= [line, eq.text[row], eq.variable[row], eq.scope[row], eq.function[row], eq.label[row], model.where(row)]
    .join(" ")
    .toLowerCase();
  return all[row];
}

/** Lines of the user's files that hold all words of a query: [[source, line]]. */
export function findLines(model, query, most) {
  const words = terms(query);
  if (words.some(([field]) => field)) return [];
  const out = [];
  model.sources.forEach((source, i) => {
    if (source.library) return;
    (source.lines ?? []).forEach((text, at) => {
      if (out.length < most && words.every(([, word]) => text.toLowerCase().includes(word))) out.push([i, at + 1]);
    });
  });
  return out;
}

/** The dialog of the search. */
export class Search {
  constructor(app) {
    this.app = app;
    this.input = h("input", {
      type: "search",
      "aria-label": "Search",
      placeholder: "text, line:12, function:loss, primitive:tanh, scope:model",
      spellcheck: "false",
      input: () => this.find(),
      keydown: (event) => this.key(event),
      role: "combobox",
      "aria-expanded": "true",
      "aria-controls": "found",
    });
    this.list = h("div", { class: "found", id: "found", role: "listbox", "aria-label": "Found" });
    this.element = h("dialog", { class: "dialog search", "aria-label": "Search" }, this.input, this.list);
  }

  open() {
    if (!this.element.open) this.element.showModal();
    this.input.select();
    this.find();
  }

  find() {
    const { model, state } = this.app,
      query = this.input.value;
    this.hits = terms(query).length
      ? [...this.kernels(query), ...this.lines(model, query), ...this.equations(model, state, query)]
      : [];
    this.at = 0;
    const drawn = this.hits.map((hit, i) =>
      h(
        "div",
        { class: "hit", role: "option", id: `hit-${i}`, click: () => this.go(i) },
        h("span", { class: "hit-kind" }, hit.kind),
        h("code", null, hit.text),
        h("span", { class: "soft" }, hit.where),
      ),
    );
    put(
      this.list,
      drawn.length
        ? drawn
        : h(
            "p",
            { class: "soft" },
            query ? "No equation, line or kernel matches." : "Type to search equations, source lines and kernels.",
          ),
    );
    this.mark();
  }

  kernels(query) {
    const { targets } = this.app.model,
      target = this.app.state.target,
      words = terms(query);
    if (words.some(([field]) => field)) return [];
    const found = (targets[target]?.kernels ?? []).flatMap((kernel, i) =>
      words.every(([, word]) => kernel.name.toLowerCase().includes(word)) ? [i] : [],
    );
    return found.slice(0, MOST.kernels).map((i) => ({
      kind: "kernel",
      text: targets[target].kernels[i].name,
      where: targets[target].kernels[i].type ?? "",
      go: { pick: pickKernel(target, i), screen: "kernels" },
    }));
  }

  lines(model, query) {
    return findLines(model, query, MOST.lines).map(([source, line]) => ({
      kind: "line",
      text: model.sources[source].lines[line - 1].trim(),
      where: `${base(model.sources[source].file)}:${line}`,
      go: { pick: pickLine(source, line), screen: "source", source },
    }));
  }

  equations(model, state, query) {
    const stage = model.isJaxpr(state.stage) ? state.stage : model.final;
    const screen = ["summary", "targets", "compilations", "diff"].includes(state.screen) ? "source" : state.screen;
    return findRows(model, query, model.rowsOf[stage] ?? [], MOST.equations).map((row) => ({
      kind: "equation",
      text: model.eq.text[row],
      where: model.where(row),
      go: { pick: pickRow(row), screen },
    }));
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      this.at = Math.max(0, Math.min(this.hits.length - 1, this.at + step));
      this.mark();
    } else if (event.key === "Enter") this.go(this.at);
    else if (event.key === "Escape")
      this.element.close(); // the field alone would only become empty
    else return;
    event.preventDefault();
  }

  mark() {
    [...this.list.children].forEach((hit, i) => hit.setAttribute("aria-selected", String(i === this.at)));
    this.list.children[this.at]?.scrollIntoView?.({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", `hit-${this.at}`);
  }

  go(i) {
    if (!this.hits[i]) return;
    this.element.close();
    this.app.set(this.hits[i].go);
  }
}
