// The canvas of the timeline: an axis, the lanes of the host, and those of each device.

import { css } from "../dom.js";
import * as format from "../format.js";
import { colour } from "../theme.js";
import { at, firstAfter, ticks } from "./lanes.js";
import { tones } from "./swatch.js";

const AXIS = 22;
const LANE = 22;
const TALL = 34;
const FEW = 4;
const TITLE = 17;
const GAP = 8;
const LETTER = 6.6;
const FONT = "11px system-ui, sans-serif";
const CODE = "11px ui-monospace, Menlo, Consolas, monospace";
const FAINT = 0.22;
const NEAR = 3;

/** Draws parts of a model's recording, and tells what is at a place of the canvas. */
export class Drawing {
  constructor(app, canvas) {
    const { model } = app;
    Object.assign(this, { app, canvas, context: canvas.getContext("2d"), view: { from: 0, to: 1 } });
    const lanes = model.lanes.length + model.hostLanes.length;
    this.tall = lanes > FEW ? LANE : TALL;
    this.bands = banded(app, this.tall);
    this.height = this.bands.at(-1).top + this.tall + GAP;
    css(canvas, { height: `${this.height}px` });
  }

  /** The time at a distance from the left edge. */
  timeAt(x) {
    const { from, to } = this.view;
    return from + (x / this.canvas.clientWidth) * (to - from);
  }

  draw(view, pointed) {
    const { canvas, context } = this,
      ratio = devicePixelRatio || 1,
      width = canvas.clientWidth;
    this.view = view;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(this.height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const ink = Object.fromEntries(["ink", "soft", "rule", "panel", "accent"].map((name) => [name, colour(name)]));
    const scale = width / (view.to - view.from);
    this.axis(view, width, ink);
    for (const band of this.bands) {
      if (band.title) text(context, band.title, 6, band.top - 5, ink.soft, FONT);
      this.lane(band, view, scale, width, ink);
    }
    if (pointed) this.frame(pointed, view, scale, ink);
  }

  axis(view, width, ink) {
    const { context } = this,
      { step, at: marks } = ticks(view.from, view.to, width / 110);
    for (const mark of marks) {
      const x = ((mark - view.from) / (view.to - view.from)) * width;
      context.fillStyle = ink.rule;
      context.fillRect(x, 0, 1, this.height);
      text(context, axisLabel(mark, step), x + 4, 14, ink.soft, FONT);
    }
  }

  /** The runs of a lane in sight; those that are chosen come last, so that no other hides them. */
  lane(band, view, scale, width, ink) {
    const { choice } = this.app;
    if (!choice || !band.isChosen) return this.pass(band, () => true, 1, view, scale, width, TEXT);
    this.pass(band, (i) => !band.isChosen(i), FAINT, view, scale, width, ink.soft);
    this.pass(band, band.isChosen, 1, view, scale, width, TEXT);
  }

  /** Draws some runs of a lane; of those that share a pixel, the first. */
  pass({ lane, top, times, tone, name }, wanted, alpha, view, scale, width, ink) {
    const { context, tall } = this;
    let drawn = -1;
    for (let place = firstAfter(lane, times.end, view.from); place < lane.length; place++) {
      const i = lane[place];
      if (times.start[i] > view.to) break;
      const left = Math.max(0, (times.start[i] - view.from) * scale),
        right = Math.min(width, (times.end[i] - view.from) * scale);
      if (right <= drawn || !wanted(i)) continue;
      const wide = Math.max(1, right - left - (right - left > 3 ? 1 : 0));
      context.globalAlpha = alpha;
      context.fillStyle = tone(i);
      context.fillRect(left, top, wide, tall - 4);
      context.globalAlpha = 1;
      drawn = Math.floor(left) + 1;
      const letters = Math.floor((wide - 8) / LETTER);
      if (letters > 3) text(context, cut(name(i), letters), left + 4, top + tall / 2 + 2, ink, CODE);
    }
  }

  frame({ start, end, top }, view, scale, ink) {
    const left = (start - view.from) * scale;
    this.context.strokeStyle = ink.ink;
    this.context.lineWidth = 2;
    this.context.strokeRect(left, top, Math.max(2, (end - start) * scale), this.tall - 4);
  }

  /** What is at a place: {kernel, run, start, end, top} or, of the host, {name, line, bytes, …}; null for nothing. */
  find(x, y) {
    const band = this.bands.find((it) => y >= it.top && y < it.top + this.tall);
    if (!band) return null;
    const { from, to } = this.view,
      near = (NEAR * (to - from)) / this.canvas.clientWidth;
    const time = this.timeAt(x);
    const i =
      at(band.lane, band.times.start, band.times.end, time, 0) ??
      at(band.lane, band.times.start, band.times.end, time, near);
    return i === null ? null : found(this.app.model, band, i);
  }

  /** What `find` gives for a run. */
  foundRun(run) {
    const band = this.bands.find((it) => it.isDevice && it.members.has(run));
    return found(this.app.model, band, run);
  }
}

const TEXT = "#1e2225"; // tones are light enough for it in both themes

function found(model, band, i) {
  const its = { start: band.times.start[i], end: band.times.end[i], top: band.top };
  const { activities, runs } = model;
  if (!band.isDevice) return { name: activities.name[i], line: activities.line[i], bytes: activities.bytes[i], ...its };
  return { kernel: model.kernels[runs.kernel[i]], run: i, ...its };
}

/** The lanes with their places from the top; the first of a device has its title. */
function banded(app, tall) {
  const { model } = app,
    { runs, activities, kernels } = model;
  const colours = tones(),
    ofHost = colour("tone-host");
  const kernel = (i) => kernels[runs.kernel[i]];
  const device = {
    isDevice: true,
    times: runs,
    tone: (i) => colours(kernel(i).line),
    name: (i) => kernel(i).name,
    isChosen: (i) => app.choice.kernels.has(runs.kernel[i]),
  };
  const host = {
    isDevice: false,
    times: activities,
    tone: (i) => (activities.line[i]?.colour == null ? ofHost : colours(activities.line[i])),
    name: (i) => label(activities.line[i], activities.name[i], activities.bytes[i]),
  };
  const byLine = { ...host, isChosen: (i) => app.choice.lines.has(activities.line[i]?.i) };
  let top = AXIS,
    last = null;
  const bands = [];
  for (const [its, of] of [
    [model.hostLanes, host],
    [model.lanes, device],
  ]) {
    for (const { title, runs: lane } of its) {
      const isFirst = title !== last,
        isByLine = of === host && lane.some((i) => activities.line[i]);
      if (isFirst) top += TITLE;
      bands.push({
        ...(isByLine ? byLine : of),
        lane,
        top,
        title: isFirst ? title : null,
        members: new Set(of.isDevice ? lane : []),
      });
      top += tall;
      last = title;
    }
    top += GAP;
  }
  return bands;
}

/** What is written on an activity: its line and what it moved, or else its name. */
const label = (line, name, bytes) => [line?.title ?? name, bytes > 0 && format.bytes(bytes)].filter(Boolean).join("  ");

function axisLabel(time, step) {
  if (time === 0) return "0";
  const [size, unit] = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
    [1, "ns"],
  ].find(([it]) => time >= it) ?? [1, "ns"];
  const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
  return `${(time / size).toFixed(digits)} ${unit}`;
}

const cut = (name, letters) => (name.length <= letters ? name : `${name.slice(0, letters - 1)}…`);

function text(context, words, x, y, fill, font) {
  context.font = font;
  context.fillStyle = fill;
  context.fillText(words, x, y);
}
