// Screen 5: the flame graph by line.

import { css, h, put } from "../../dom.js";
import * as format from "../../format.js";
import { layout, pathTo, tree } from "../flame.js";
import { pickKernel, pickLine } from "../model.js";
import { tone } from "../swatch.js";

const ROW = 24;
const LEAST = 3;
const WORDS = 34;

export const flame = {
  id: "flame",
  title: "Flame graph",
  about:
    "The time of the kernels by file, function, line, equations and kernel. Click a box to zoom into it, and one above to zoom out.",
  missing: (app) => (app.model.kernels.length ? null : "The recording has no run of a kernel."),
  draw: (app, body) => new Flame(app, body),
};

class Flame {
  constructor(app, body) {
    Object.assign(this, { app, root: tree(app.model), boxes: [] });
    this.focus = this.root;
    this.graph = h("div", { class: "flame-graph", role: "group", "aria-label": "Flame graph" });
    this.words = h("p", { class: "tip", "aria-live": "polite" });
    put(body, h("div", { class: "flame-frame" }, this.graph), this.words);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.graph);
    this.draw();
  }

  draw() {
    const width = this.graph.clientWidth || 800;
    this.boxes = layout(this.focus, LEAST / width).map((it) => ({ ...it, element: this.box(it, width) }));
    const deepest = Math.max(...this.boxes.map((it) => it.depth));
    css(this.graph, { height: `${(deepest + 1) * ROW}px` });
    put(
      this.graph,
      this.boxes.map((it) => it.element),
    );
    this.tell(this.focus);
    this.paint();
  }

  box({ node, depth, x, width }, all) {
    const element = h(
      "button",
      {
        class: `flame-box ${node.line ? `of-line ${tone(node.line)}` : "tone-none"}`,
        title: words(node, this.root),
        "data-kind": node.kind,
        click: () => this.enter(node),
        mouseenter: () => this.tell(node),
        focus: () => this.tell(node),
      },
      width * all > WORDS && node.name,
    );
    return css(element, { left: `${x * 100}%`, width: `${width * 100}%`, top: `${depth * ROW}px` });
  }

  enter(node) {
    const { app } = this;
    this.focus = node;
    if (node.kernel) app.select(pickKernel(node.kernel));
    else if (node.kind === "line") app.select(pickLine(node.line));
    this.draw();
    this.boxes.find((it) => it.node === node)?.element.focus();
  }

  tell(node) {
    put(this.words, words(node, this.root));
  }

  changed() {
    return true;
  }

  paint() {
    const { choice } = this.app;
    this.graph.classList.toggle("has-choice", Boolean(choice));
    for (const { node, element } of this.boxes) {
      const isLit = node.kernel ? choice?.kernels.has(node.kernel.i) : node.line && choice?.lines.has(node.line.i);
      element.classList.toggle("chosen", Boolean(isLit));
    }
  }

  dispose() {
    this.observer.disconnect();
  }
}

function words(node, root) {
  const share = root.seconds ? node.seconds / root.seconds : 0;
  const where = pathTo(node)
    .slice(1, -1)
    .map((it) => it.name)
    .join(" › ");
  const text = node.line?.text && node.kind === "line" ? `  ${node.line.text}` : "";
  return `${format.seconds(node.seconds)}, ${format.percent(share)}: ${node.name}${text}${where ? `  (${where})` : ""}`;
}
