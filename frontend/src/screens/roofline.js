// Screen 5: every kernel as a dot under the roof of the device.

import { css, h, put } from "../dom.js";
import * as format from "../format.js";
import { bar } from "../grid.js";
import { plot } from "../plot.js";
import { pickKernel } from "../state.js";
import { colour } from "../theme.js";
import { VirtualList } from "../virtual.js";
import { LOWER_BOUND, roofed } from "./kernels.js";
import { about } from "../tables.js";

const NEAR = 18;

export const roofline = {
  ...about("roofline"),
  missing(app) {
    const why = ["roofline", "kernels"].map((part) => app.model.unavailable(app.state.target, part)).find(Boolean);
    if (why) return why;
    const target = app.model.targets[app.state.target];
    if (!target.roof) return "the peaks of the device are not known";
    return target.kernels.some((kernel) => (kernel.measured ?? kernel).seconds && kernel.flops)
      ? null
      : "no kernel has both a time and FLOPs";
  },
  draw: (app, body) => new Roofline(app, body),
};

/** What the time of a kernel is. */
const which = ({ kernel }) => (kernel.measured ? "measured" : kernel.time);

/** Powers of ten around two numbers. */
const decades = (low, high) => [10 ** Math.floor(Math.log10(low * 0.7)), 10 ** Math.ceil(Math.log10(high))];

class Roofline {
  constructor(app, body) {
    const target = app.model.targets[app.state.target];
    const all = target.kernels.map((kernel, index) => ({ kernel, index, ...roofed(kernel, target.roof) }));
    Object.assign(this, {
      app,
      target,
      dots: all
        .filter((it) => it.taken && it.kernel.flops && it.kernel.bytes)
        .sort((a, b) => a.intensity - b.intensity),
    });
    this.total = all.reduce((sum, it) => sum + (it.taken ?? 0), 0);
    this.host = h("div", { class: "plot" });
    this.tip = h("p", { class: "tip", "aria-live": "off" }, "\u00a0");
    this.byTime = [...all].sort((a, b) => (b.taken ?? 0) - (a.taken ?? 0));
    put(
      body,
      this.bounds(all),
      h(
        "div",
        { class: "panes narrow-right" },
        h("section", { class: "pane" }, this.host, this.tip),
        h("section", { class: "pane" }, h("p", { class: "pane-title" }, "kernels by time"), this.side().element),
      ),
    );
    this.draw();
  }

  /** The share of the time that memory and arithmetic bound. */
  bounds(all) {
    const time = (bound) => all.reduce((sum, it) => sum + (it.bound === bound ? (it.taken ?? 0) : 0), 0);
    const parts = [
      ["memory", time("memory")],
      ["compute", time("compute")],
    ];
    const rest = this.total - parts[0][1] - parts[1][1];
    const left = all.length - this.dots.length;
    const words = [...new Set(all.map(which).filter(Boolean))].join(", ");
    return h(
      "div",
      { class: "bounds" },
      h(
        "div",
        {
          class: "stack",
          role: "img",
          "aria-label": parts.map(([name, t]) => `${name}-bound ${format.percent(t / this.total)}`).join(", "),
        },
        [...parts, ["other", rest]].map(([name, t]) =>
          css(h("span", { class: `stack-${name}` }), { width: `${(100 * t) / this.total}%` }),
        ),
      ),
      h(
        "p",
        null,
        parts.map(([name, t]) =>
          h(
            "span",
            { class: "bound" },
            h("span", { class: `key stack-${name}` }),
            `${name}-bound ${format.percent(t / this.total)} of ${format.seconds(this.total)}`,
          ),
        ),
        h(
          "span",
          { class: "soft" },
          ` Times: ${words}. Roof: ${format.flops(this.target.roof.flops)}/s, ${format.bytes(this.target.roof.bandwidth)}/s (${this.target.roof.source}).`,
          this.dots.some((it) => which(it) === LOWER_BOUND) &&
            " A lower bound is the time at the roof, so its dots lie on the line.",
          left > 0 && ` ${format.plural(left, "kernel")} without FLOPs ${left === 1 ? "is" : "are"} not drawn.`,
        ),
      ),
    );
  }

  side() {
    const { app } = this;
    this.list = new VirtualList({
      count: this.byTime.length,
      label: "Kernels by time",
      height: 22,
      draw: (i) => this.line(this.byTime[i]),
      paint: (el, i) => {
        el.classList.toggle("lit", this.isLit(this.byTime[i]));
        el.setAttribute("aria-selected", String(this.isLit(this.byTime[i])));
      },
      enter: (i) => app.select(pickKernel(app.state.target, this.byTime[i].index)),
      hover: (i) => app.hover(i === null ? null : this.byTime[i].kernel.rows),
    });
    return this.list;
  }

  line({ kernel, taken, bound, share }) {
    return h(
      "div",
      { class: "kernel-line" },
      bar(taken / this.byTime[0].taken),
      h("code", null, kernel.name),
      h("span", { class: "num" }, format.seconds(taken)),
      h("span", { class: "num soft" }, [share !== null && format.percent(share), bound].filter(Boolean).join(", ")),
    );
  }

  isLit({ kernel, index }) {
    const { choice, lit } = this.app;
    return choice?.kind === "kernel"
      ? choice.index === index && choice.target === this.app.state.target
      : kernel.rows.some((row) => lit.has(row));
  }

  ranges() {
    const { roof } = this.target,
      ridge = roof.flops / roof.bandwidth,
      x = this.dots.map((it) => it.intensity),
      y = this.dots.map((it) => it.kernel.flops / it.taken);
    return {
      x: decades(Math.min(...x, ridge), Math.max(...x, ridge * 2)),
      y: decades(Math.min(...y), roof.flops * 1.2),
    };
  }

  draw() {
    const { x, y } = this.ranges(),
      values = (_, splits) => splits.map((it) => (it === null ? null : format.count(it)));
    const options = {
      scales: { x: { time: false, distr: 3, range: x }, y: { distr: 3, range: y } },
      series: [{}, { paths: () => null, points: { show: false } }],
      axes: [
        { label: "FLOP for each byte", values },
        { label: "FLOP/s", values, size: 60 },
      ],
      cursor: { points: { show: false }, x: false, y: false },
      hooks: { draw: [(u) => this.paintDots(u)], setCursor: [(u) => this.point(u)] },
    };
    this.plot = plot(
      this.host,
      options,
      [this.dots.map((it) => it.intensity), this.dots.map((it) => it.kernel.flops / it.taken)],
      "Roofline of the kernels",
    );
    this.plot.over.addEventListener(
      "click",
      () => this.near && this.app.select(pickKernel(this.app.state.target, this.near.index)),
    );
  }

  paintDots(u) {
    const { ctx } = u,
      { roof } = this.target,
      px = (x) => u.valToPos(x, "x", true),
      py = (y) => u.valToPos(y, "y", true),
      {
        x: [low, high],
      } = this.ranges();
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    ctx.strokeStyle = colour("ink");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(px(low), py(low * roof.bandwidth));
    ctx.lineTo(px(roof.flops / roof.bandwidth), py(roof.flops));
    ctx.lineTo(px(high), py(roof.flops));
    ctx.stroke();
    const dots = [...this.dots].sort((a, b) => this.isLit(a) - this.isLit(b));
    const some = dots.some((it) => this.isLit(it));
    for (const it of dots) this.dot(ctx, px(it.intensity), py(it.kernel.flops / it.taken), it, some);
    ctx.restore();
  }

  dot(ctx, x, y, it, some) {
    const radius = (3 + 12 * Math.sqrt(it.taken / this.total)) * devicePixelRatio,
      on = this.isLit(it);
    ctx.beginPath();
    ctx.arc(x, y, radius, 0, 2 * Math.PI);
    ctx.globalAlpha = some && !on ? 0.25 : 0.6;
    ctx.fillStyle = colour(it.bound === "memory" ? "memory" : "compute");
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.strokeStyle = on || it === this.near ? colour("ink") : colour("panel");
    ctx.lineWidth = (on ? 2 : 1) * devicePixelRatio;
    ctx.stroke();
  }

  /** The dot under the pointer. */
  point(u) {
    const { left, top } = u.cursor;
    let best = null,
      least = NEAR;
    for (const it of left < 0 ? [] : this.dots) {
      const away = Math.hypot(u.valToPos(it.intensity, "x") - left, u.valToPos(it.kernel.flops / it.taken, "y") - top);
      if (away < least) [best, least] = [it, away];
    }
    if (best === this.near) return;
    this.near = best;
    u.over.style.cursor = best ? "pointer" : "default";
    this.tip.textContent = best
      ? `${best.kernel.name}: ${format.seconds(best.taken)}, ${format.count(best.intensity)} FLOP/byte, ${best.share === null ? "" : `${format.percent(best.share)} of the roof, `}${best.bound}-bound`
      : "\u00a0";
    this.app.hover(best?.kernel.rows ?? null);
  }

  changed() {
    const i = this.byTime.findIndex((it) => this.isLit(it));
    if (i >= 0) this.list.reveal(i);
    return true;
  }

  paint() {
    this.list.repaint();
    this.plot.redraw(false);
  }

  dispose() {
    this.list.dispose();
    this.plot.dispose();
  }
}
