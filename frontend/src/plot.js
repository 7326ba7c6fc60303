// uPlot in the page's colours.

import uPlot from "uplot";
import { h } from "./dom.js";
import { colour } from "./theme.js";

/** A plot that fills `host` and follows its size; `options` are uPlot's. */
export function plot(host, options, data, label) {
  const size = () => ({ width: Math.max(240, host.clientWidth), height: Math.max(160, host.clientHeight) });
  const axis = (its) => ({
    stroke: colour("soft"),
    grid: { stroke: colour("rule"), width: 1 },
    ticks: { stroke: colour("rule-strong"), width: 1 },
    font: "11px system-ui, sans-serif",
    labelFont: "11px system-ui, sans-serif",
    labelSize: 18,
    ...its,
  });
  const it = new uPlot(
    {
      ...size(),
      legend: { show: false },
      ...options,
      axes: options.axes.map(axis),
      cursor: { drag: { x: false, y: false }, ...options.cursor },
    },
    data,
    host,
  );
  it.root.setAttribute("role", "img");
  it.root.setAttribute("aria-label", label);
  const observer = new ResizeObserver(() => it.setSize(size()));
  observer.observe(host);
  return Object.assign(it, { dispose: () => (observer.disconnect(), it.destroy()) });
}

/** A stepped area. */
export const stepped = (align = 1) => uPlot.paths.stepped({ align });

/** The place for a plot. */
export const stage = (name) => h("div", { class: `plot ${name}` });
