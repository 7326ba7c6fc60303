// Screen 4: the kernels of a target, what is inside each, and the values that go through memory between them.

import { h, put } from "../dom.js";
import * as format from "../format.js";
import { Grid, bar, switcher } from "../grid.js";
import { program } from "../highlight.js";
import { missing } from "../app.js";
import { pickKernel, pickRow } from "../state.js";

export const kernels = {
  id: "kernels",
  title: "Kernels",
  about:
    "Each kernel reads its inputs from memory and writes its results there; unfold one to see the equations inside by source line. The second tab lists the values that pass through memory between kernels, with the compiler's reason for not fusing them.",
  missing: (app) => app.model.unavailable(app.state.target, "kernels"),
  draw: (app, body) => new Kernels(app, body),
};

export const LOWER_BOUND = "lower bound";

/** Numbers of a kernel that need the roof: intensity, the least time, and the share of the roof that its time reaches. */
export function roofed(kernel, roof) {
  const intensity = kernel.bytes ? kernel.flops / kernel.bytes : null;
  const least = roof ? Math.max(kernel.flops / roof.flops, kernel.bytes / roof.bandwidth) : null;
  return {
    intensity,
    least,
    share: least !== null && kernel.seconds && kernel.time !== LOWER_BOUND ? least / kernel.seconds : null, // a bound is on the roof by itself
    bound: roof && intensity !== null ? (intensity < roof.flops / roof.bandwidth ? "memory" : "compute") : null,
  };
}

class Kernels {
  constructor(app, body) {
    Object.assign(this, { app, body, target: app.model.targets[app.state.target] });
    this.draw();
  }

  draw() {
    const { app, target } = this,
      tab = app.state.tab === "boundaries" ? "boundaries" : "kernels";
    this.grid?.dispose();
    this.grid = null;
    const tabs = switcher(
      "Table",
      [
        ["kernels", `kernels (${format.count(target.kernels.length)})`],
        ["boundaries", `boundaries (${format.count(target.boundaries.length)})`],
      ],
      tab,
      (it) => app.set({ tab: it === "kernels" ? null : it }),
    );
    const why = tab === "boundaries" ? app.model.unavailable(app.state.target, "boundaries") : null;
    const reasons = tab === "boundaries" && !why ? app.model.unavailable(app.state.target, "reasons") : null;
    if (!why) this.grid = tab === "kernels" ? kernelGrid(app, target) : boundaryGrid(app, target);
    put(
      this.body,
      h(
        "div",
        { class: "tools" },
        tabs,
        tab === "kernels" && coverage(target),
        reasons && h("span", { class: "soft" }, reasons),
      ),
      why ? missing(why) : this.grid.element,
    );
    this.reveal();
  }

  changed(names) {
    if (names.has("tab")) this.draw();
    else this.reveal();
    return true;
  }

  reveal() {
    const { choice, lit } = this.app;
    if (!choice || !this.grid) return;
    const shown = this.grid.shown.filter((it) => !it.under).map((it) => it.item);
    const item = shown.find((it) =>
      choice.kind === "kernel" ? it.index === choice.index : it.kernel?.rows.some((row) => lit.has(row)),
    );
    if (item) this.grid.reveal(item);
  }

  paint() {
    this.grid?.repaint();
  }

  dispose() {
    this.grid?.dispose();
  }
}

function coverage({ coverage: its }) {
  if (!its?.instructions) return null;
  const put_in = its.inserted?.length ? `; ${format.plural(its.inserted.length, "instruction")} put in by XLA` : "";
  return h(
    "span",
    { class: "soft", title: (its.inserted ?? []).slice(0, 40).join(" ") },
    `${format.percent(its.with_id / its.instructions)} of ${format.count(its.instructions)} instructions are traced to an equation${put_in}`,
  );
}

function kernelGrid(app, target) {
  const items = target.kernels.map((kernel, index) => ({ kernel, index, ...roofed(kernel, target.roof) }));
  const all = target.kernels.reduce((sum, kernel) => sum + (kernel.seconds ?? 0), 0);
  return new Grid({
    label: "Kernels",
    columns: kernelColumns(app, target, all),
    items,
    sort: all ? [2, true] : null,
    enter: (item, under) =>
      app.select(under?.row === undefined ? pickKernel(app.state.target, item.index) : pickRow(under.row)),
    hover: (item, under) => app.hover(item === null ? null : under ? [under.row] : item.kernel.rows),
    paint: (element, item, under) =>
      light(
        app,
        element,
        under?.row === undefined ? item.kernel.rows : [under.row],
        !under && app.choice?.kind === "kernel" && app.choice.index === item.index,
      ),
    inside: (item) => inside(app, item.kernel),
  });
}

function kernelColumns(app, target, all) {
  const its = (name) => (item) => item.kernel[name];
  const words = [...new Set(target.kernels.map((kernel) => kernel.time).filter(Boolean))];
  const most = Math.max(Number.MIN_VALUE, ...target.kernels.map((kernel) => kernel.seconds ?? 0));
  const title = `time${words.length === 1 ? `, ${words[0]}` : ""}`;
  return [
    {
      title: "kernel",
      width: "minmax(9.5rem, 2fr)",
      value: its("name"),
      show: ({ kernel }) => [
        h("code", null, kernel.name),
        kernel.runs > 1 && h("span", { class: "soft" }, ` ×${format.count(kernel.runs)}`),
        kernel.inserted && h("span", { class: "badge" }, "by XLA"),
      ],
    },
    { title: "kind", width: "5rem", value: its("kind") },
    {
      title,
      width: words.length > 1 ? "4.5rem" : "minmax(8rem, 0.8fr)",
      number: true,
      value: its("seconds"),
      show: ({ kernel }) => format.seconds(kernel.seconds),
    },
    ...(words.length > 1
      ? [
          {
            title: "which is",
            width: "7rem",
            value: its("time"),
            show: ({ kernel }) => h("span", { class: "soft" }, kernel.time ?? ""),
          },
        ]
      : []),
    {
      title: "share",
      width: "5rem",
      value: its("seconds"),
      number: true,
      show: ({ kernel }) => [
        bar((kernel.seconds ?? 0) / most),
        format.percent(all ? (kernel.seconds ?? 0) / all : null),
      ],
    },
    {
      title: "FLOPs",
      width: "4.2rem",
      number: true,
      value: its("flops"),
      show: ({ kernel }) => format.count(kernel.flops),
    },
    {
      title: "bytes",
      width: "4.8rem",
      number: true,
      value: its("bytes"),
      show: ({ kernel }) => format.bytes(kernel.bytes),
    },
    {
      title: "FLOP/byte",
      width: "4.4rem",
      number: true,
      value: (item) => item.intensity,
      show: (item) => format.count(item.intensity),
    },
    {
      title: "of roof",
      about:
        "The least time that the peaks of the device allow, as a share of the kernel's time; empty where the time itself is that bound",
      width: "3.8rem",
      number: true,
      value: (item) => item.share,
      show: (item) => format.percent(item.share),
    },
    {
      title: "eqns",
      about: "Equations inside",
      width: "2.4rem",
      number: true,
      value: ({ kernel }) => kernel.rows.length,
    },
    {
      title: "line",
      width: "minmax(6rem, 1fr)",
      value: ({ kernel }) => firstLine(app, kernel),
      show: ({ kernel }) => lines(app, kernel),
    },
  ];
}

const firstLine = (app, kernel) => kernel.rows.map((row) => app.model.where(row)).find(Boolean) ?? "";

function lines(app, kernel) {
  const found = [...new Set(kernel.rows.map((row) => app.model.where(row)).filter(Boolean))];
  return found.length > 2 ? `${found[0]} +${found.length - 1}` : found.join(", ");
}

/** The equations of a kernel, by source line. */
function inside(app, kernel) {
  const { model } = app;
  const rows = [...kernel.rows].sort(
    (a, b) => model.where(a).localeCompare(model.where(b), undefined, { numeric: true }) || a - b,
  );
  if (!rows.length)
    return [{ draw: () => h("span", { class: "soft" }, "No equation is inside: XLA put this kernel in.") }];
  return rows.map((row, i) => ({
    row,
    draw: () => [
      h("span", { class: "under-where" }, i && model.where(row) === model.where(rows[i - 1]) ? "" : model.where(row)),
      h("span", { class: `direction dot ${model.eq.direction[row]}`, title: model.eq.direction[row] }),
      h("code", null, program(model.eq.text[row])),
    ],
  }));
}

function boundaryGrid(app, target) {
  const name = (k) => target.kernels[k]?.name ?? "argument";
  const go = (k) =>
    h(
      "button",
      {
        class: "link",
        click: (event) => (event.preventDefault(), app.select(pickKernel(app.state.target, k), { tab: null })),
      },
      h("code", null, name(k)),
    );
  const told = target.boundaries.some((boundary) => boundary.reason !== null || boundary.gain !== null);
  const items = target.boundaries.map((boundary, index) => ({
    boundary,
    index: -1 - index,
    kernel: target.kernels[boundary.producer],
  }));
  return new Grid({
    label: "Boundaries",
    items,
    sort: [1, true],
    columns: [
      {
        title: "value",
        width: "minmax(9rem, 1fr)",
        value: ({ boundary }) => boundary.value,
        show: ({ boundary }) => h("code", { title: boundary.value }, boundary.value.replace(/\{[^}]*\}/g, "")),
      },
      {
        title: "bytes",
        width: "6rem",
        number: true,
        value: ({ boundary }) => boundary.bytes,
        show: ({ boundary }) => format.bytes(boundary.bytes),
      },
      {
        title: "written by",
        width: "minmax(9rem, 1fr)",
        value: ({ boundary }) => name(boundary.producer),
        show: ({ boundary }) => (target.kernels[boundary.producer] ? go(boundary.producer) : "argument"),
      },
      {
        title: "read by",
        width: "minmax(10rem, 1.4fr)",
        value: ({ boundary }) => boundary.consumers.length,
        show: ({ boundary }) =>
          boundary.consumers
            .slice(0, 3)
            .map((k, i) => [i > 0 && ", ", go(k)])
            .concat(boundary.consumers.length > 3 ? ` +${boundary.consumers.length - 3}` : ""),
      },
      ...(!told
        ? []
        : [
            {
              title: "gain if fused",
              width: "6rem",
              number: true,
              value: ({ boundary }) => boundary.gain,
              show: ({ boundary }) => format.seconds(boundary.gain),
            },
            {
              title: "why it is not fused",
              width: "minmax(14rem, 3fr)",
              value: ({ boundary }) => boundary.reason ?? "",
              show: ({ boundary }) => h("span", { title: boundary.reason }, boundary.reason ?? "–"),
            },
          ]),
    ],
    enter: (item) => item.kernel && app.select(pickKernel(app.state.target, item.boundary.producer)),
    paint: (element, item) => light(app, element, item.kernel?.rows ?? [], false),
  });
}

function light(app, element, rows, chosen) {
  element.classList.toggle("lit", chosen || rows.some((row) => app.lit.has(row)));
  element.classList.toggle(
    "hot",
    rows.some((row) => app.hot.has(row)),
  );
  element.setAttribute("aria-selected", String(chosen));
}
