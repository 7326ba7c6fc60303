// Screen 4: when each kernel ran, on a canvas, so that any number of them stays fluent.

import { h, put } from "../../dom.js";
import * as format from "../../format.js";
import { Drawing } from "../drawing.js";
import { moved, zoomed } from "../lanes.js";
import { pickKernel, pickLine } from "../model.js";
import { swatch } from "../swatch.js";

const STEP = 1.5;
const FASTER = 0.002;
const PAN = 0.2;

export const timeline = {
  id: "timeline",
  title: "Timeline",
  about:
    "When each kernel ran, and what the host did meanwhile, its Python as samples saw it. Zoom with the wheel, two fingers or + and −; move by dragging or with ← and →.",
  missing: (app) => (app.model.runs.kernel.length ? null : "The recording has no run of a kernel."),
  draw: (app, body) => new Timeline(app, body),
};

class Timeline {
  constructor(app, body) {
    const { content } = app.model;
    Object.assign(this, { app, whole: Math.max(1, content.timeline.seconds * 1e9), pointers: new Map(), asked: false });
    this.view = app.timelineView ?? this.one();
    this.canvas = h("canvas", {
      class: "timeline-canvas",
      tabindex: 0,
      role: "application",
      "aria-label": `Timeline of ${format.plural(app.model.runs.kernel.length, "run")} of kernels`,
      keydown: (event) => this.key(event),
      pointerdown: (event) => this.down(event),
      pointermove: (event) => this.move(event),
      pointerup: (event) => this.up(event),
      pointercancel: (event) => this.pointers.delete(event.pointerId),
      pointerleave: (event) => event.pointerType === "mouse" && this.point(null), // a finger leaves when it is lifted
    });
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.words = h("div", { class: "tip run-words", "aria-live": "polite" });
    this.scroller = h("div", { class: "timeline-frame" }, this.canvas);
    put(body, this.tools(content.timeline.shown), this.scroller, this.words, legend(app));
    this.drawing = new Drawing(app, this.canvas);
    this.observer = new ResizeObserver(() => this.ask());
    this.observer.observe(this.scroller);
    this.point(null);
    this.reveal();
    this.ask();
  }

  tools(shown) {
    const button = (text, label, click) => h("button", { class: "small", "aria-label": label, click }, text);
    return h(
      "div",
      { class: "tools" },
      button("one call", "Show one call", () => this.see(this.one())),
      button("all", "Show all", () => this.see({ from: 0, to: this.whole })),
      button("−", "Zoom out", () => this.zoom(STEP)),
      button("+", "Zoom in", () => this.zoom(1 / STEP)),
      h("span", { class: "soft" }, shown),
    );
  }

  /** The call in the middle, with a little around it. */
  one() {
    const [from, to] = this.app.model.content.timeline.focus.map((it) => it * 1e9),
      more = 0.02 * (to - from);
    return zoomed({ from: from - more, to: to + more }, 1, from, this.whole);
  }

  see(view) {
    this.view = this.app.timelineView = view;
    this.ask();
  }

  zoom(factor, about = (this.view.from + this.view.to) / 2) {
    this.see(zoomed(this.view, factor, about, this.whole));
  }

  pan(share) {
    this.see(moved(this.view, share * (this.view.to - this.view.from), this.whole));
  }

  /** Draws before the next frame, however often it is asked. */
  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.drawing.draw(this.view, this.pointed);
    });
  }

  wheel(event) {
    event.preventDefault();
    const across = event.shiftKey ? event.deltaY : event.deltaX;
    if (Math.abs(across) > Math.abs(event.deltaY) || event.shiftKey) this.pan(across / this.canvas.clientWidth);
    else this.zoom(Math.exp(event.deltaY * FASTER), this.drawing.timeAt(event.offsetX));
  }

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, from: event.offsetX });
  }

  /** One pointer moves what is shown, two zoom it; without a button, it points at a run. */
  move(event) {
    const it = this.pointers.get(event.pointerId);
    if (!it) return this.point(this.drawing.find(event.offsetX, event.offsetY));
    const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, its]) => its);
    const before = other ? Math.abs(it.x - other.x) : 0,
      by = event.offsetX - it.x;
    it.x = event.offsetX;
    if (!other) return this.pan(-by / this.canvas.clientWidth);
    const after = Math.abs(it.x - other.x);
    if (before > 4 && after > 4) this.zoom(before / after, this.drawing.timeAt((it.x + other.x) / 2));
  }

  up(event) {
    const it = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (!it || Math.abs(it.x - it.from) > 3) return;
    const found = this.drawing.find(event.offsetX, event.offsetY);
    this.point(found);
    if (found?.kernel) this.app.select(pickKernel(found.kernel));
    else if (found?.line) this.app.select(pickLine(found.line));
  }

  /** Says what a run is; null is nothing. */
  point(found) {
    this.pointed = found;
    put(this.words, found ? told(found) : this.rest());
    this.ask();
  }

  rest() {
    const { choice } = this.app;
    const keys = ["Point at a run, or choose one with ", h("kbd", null, ","), " and ", h("kbd", null, "."), "."];
    const words = choice ? "The runs of what is chosen are in full colour." : keys;
    return [h("p", null, words), h("p", null, "\u00a0")];
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = {
      "+": () => this.zoom(1 / STEP),
      "=": () => this.zoom(1 / STEP),
      "-": () => this.zoom(STEP),
      0: () => this.see({ from: 0, to: this.whole }),
      Home: () => this.see(this.one()),
      ArrowLeft: () => this.pan(-PAN),
      ArrowRight: () => this.pan(PAN),
      ",": () => this.next(-1),
      ".": () => this.next(1),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** Chooses the run before or after that which is pointed at. */
  next(by) {
    const { runs, kernels } = this.app.model,
      inSight = runs.start.findIndex((_, i) => runs.end[i] >= this.view.from);
    const now = this.pointed?.run ?? (inSight < 0 ? 0 : inSight) - Math.max(by, 0);
    const run = Math.max(0, Math.min(runs.kernel.length - 1, now + by));
    this.show(run);
    this.app.select(pickKernel(kernels[runs.kernel[run]]));
    this.point(this.drawing.foundRun(run));
  }

  /** Moves to a run, or an activity of the host, that is out of sight. */
  show(run, { start, end } = this.app.model.runs) {
    const { from, to } = this.view,
      middle = (start[run] + end[run]) / 2;
    if (middle < from || middle > to) this.see(moved(this.view, middle - (from + to) / 2, this.whole));
  }

  /** Moves to a run of what is chosen, or to what its line did on the host, if none is in sight. */
  reveal() {
    const { choice, model } = this.app,
      { runs, activities } = model;
    if (!choice) return;
    const own = runs.kernel.flatMap((kernel, i) => (choice.kernels.has(kernel) ? [i] : []));
    const its = own.length ? own : activities.line.flatMap((line, i) => (line === choice.line ? [i] : [])),
      of = own.length ? runs : activities;
    if (its.length && !its.some((i) => of.end[i] >= this.view.from && of.start[i] <= this.view.to))
      this.show(its[its.length >> 1], of);
  }

  changed(names) {
    if (names.has("pick")) this.reveal();
    if (!this.pointed) this.point(null);
    return true;
  }

  paint() {
    this.ask();
  }

  dispose() {
    this.observer.disconnect();
  }
}

/** What the colours are: the lines that took longest. */
function legend(app) {
  const its = app.model.lines.filter((it) => it.colour !== null).sort((a, b) => a.colour - b.colour);
  const item = (line) =>
    h(
      "li",
      null,
      h(
        "button",
        { class: "legend-line", title: line.text, click: () => app.select(pickLine(line)) },
        swatch(line),
        line.title,
        h("span", { class: "soft" }, ` ${format.percent(line.share)}`),
      ),
    );
  return h("ul", { class: "legend of-timeline", "aria-label": "Colours" }, its.map(item));
}

function told({ kernel, start, end, name, line, bytes }) {
  const time = `${format.seconds((end - start) / 1e9)} at ${format.seconds(start / 1e9)}`;
  const by = kernel?.line ?? line,
    of = by ? `${by.title}  ${by.text}` : "\u00a0";
  if (!kernel)
    return [
      h("p", null, h("b", null, name), ` · ${time}${bytes > 0 ? ` · ${format.bytes(bytes)}` : ""}`),
      h("p", null, h("code", { title: of }, of)),
    ];
  return [
    h("p", null, h("b", null, kernel.name), ` · ${time} · ${kernel.labels || "no equation known"}`),
    h("p", null, h("code", { title: of }, of)),
  ];
}
