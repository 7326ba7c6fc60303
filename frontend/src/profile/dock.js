// The dock: the line or kernel that is chosen, its numbers, and the way to it on each screen.

import { h, put } from "../dom.js";
import * as format from "../format.js";
import { inspections } from "./inspections.js";
import { pickKernel, pickLine } from "./model.js";

const FEW = 6;

/** The foot of the page. */
export class Dock {
  constructor(app) {
    this.app = app;
    this.element = h("footer", { class: "dock", "aria-label": "Chosen", "aria-live": "polite" });
  }

  show() {
    const { choice } = this.app;
    if (!choice)
      return put(
        this.element,
        h(
          "p",
          { class: "dock-empty" },
          "You have not chosen anything. Click a line or a kernel, or press ",
          h("kbd", null, "j"),
          ".",
        ),
      );
    const title = choice.kind === "line" ? choice.line.text || choice.line.title : choice.kernel.name;
    put(
      this.element,
      h("div", { class: "dock-what" }, h("code", { class: "dock-title", title }, title), this.actions()),
      h(
        "div",
        { class: "facts" },
        choice.kind === "line" ? lineFacts(choice.line) : kernelFacts(choice.kernel),
        inspections(this.app.model, choice.kernels, choice.kind === "line" ? "source&heat=measured" : "kernels"),
      ),
      this.thread(choice),
    );
  }

  actions() {
    const { app } = this;
    const go = (screen, text, key) =>
      h("button", { class: "small", click: () => app.set({ screen }), "aria-keyshortcuts": key }, text);
    return h(
      "span",
      { class: "actions" },
      go("lines", "Lines", "l"),
      go("timeline", "Timeline", "t"),
      go("flame", "Flame graph", "f"),
      h("button", { class: "small", click: () => app.select(null), "aria-label": "Choose nothing" }, "✕"),
    );
  }

  thread({ kind, line, kernel }) {
    const { app } = this,
      { kernels } = app.model;
    const bead = (title, text, go, here) =>
      h(
        "button",
        { class: "bead", click: () => app.set(go), "aria-pressed": String(here) },
        h("span", { class: "bead-title" }, title),
        h("span", { class: "bead-text" }, text),
      );
    const longest = [...line.kernels].sort((a, b) => kernels[b].seconds - kernels[a].seconds);
    const shown = kernel ? [kernel.i] : longest.slice(0, FEW);
    const more = kernel ? 0 : longest.length - shown.length;
    return h(
      "div",
      { class: "thread", role: "group", "aria-label": "From the line to the kernel" },
      bead("line", line.title, { screen: "lines", pick: pickLine(line) }, kind === "line"),
      shown.map((k) =>
        bead("kernel", kernels[k].name, { screen: "kernels", pick: pickKernel(kernels[k]) }, k === kernel?.i),
      ),
      more > 0 && bead("kernels", `+${more} more`, { screen: "kernels" }, false),
    );
  }
}

const fact = (name, value) =>
  h("span", { class: "fact" }, h("span", { class: "fact-name" }, name), h("b", null, value));

function lineFacts(line) {
  return [
    h("span", { class: "fact" }, line.title),
    line.function && fact("in", line.function),
    line.seconds > 0 && fact("kernels", `${format.seconds(line.seconds)} (${format.percent(line.share)})`),
    line.calls > 0 && fact("calls", format.count(line.calls)),
    line.waits > 0 && fact("waited", `${format.seconds(line.waited)} in ${format.plural(line.waits, "wait")}`),
    line.compiled > 0 && fact("compiling", format.seconds(line.compiled)),
    line.python > 0 && fact("Python", format.seconds(line.python)),
    line.bytes > 0 && fact("moved", `${format.bytes(line.bytes)} in ${format.seconds(line.moved)}`),
  ];
}

function kernelFacts(kernel) {
  return [
    fact("of", kernel.module),
    fact("took", `${format.seconds(kernel.seconds)} (${format.percent(kernel.share)})`),
    fact("runs", format.count(kernel.runs)),
    fact("each", format.seconds(kernel.each)),
    kernel.labels && fact("equations", kernel.labels),
    kernel.inserted && h("span", { class: "badge" }, "put in by the compiler"),
  ];
}
