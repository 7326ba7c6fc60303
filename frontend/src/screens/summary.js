// Screen 1: is it fine?

import { h, put } from "../dom.js";
import * as format from "../format.js";
import { bar, plain } from "../grid.js";
import { base } from "../model.js";
import { pickLine, pickRow } from "../state.js";
import { sideBySide, special, unmeasured } from "./targets.js";
import { about, columns } from "../tables.js";

const MOST_ARGUMENTS = 12;

export const summary = {
  ...about("summary"),

  draw(app, body) {
    const { report } = app.model;
    put(
      body,
      report.failure && failure(report),
      strip(app),
      h(
        "div",
        { class: "columns" },
        h(
          "section",
          { class: "wide-column" },
          h("h2", null, "Findings"),
          findings(app),
          h("h2", null, "Targets"),
          targetTable(app),
        ),
        h(
          "section",
          null,
          h("h2", null, "One call, as if nothing were fused"),
          totals(report),
          signature("Arguments", report.arguments),
          signature("Results", report.results),
        ),
      ),
    );
  },
};

function failure(report) {
  return h(
    "p",
    { class: "missing", role: "alert" },
    h("strong", null, `The report is incomplete, as “${report.failure.stage}” failed: `),
    report.failure.error,
  );
}

function strip(app) {
  const steps = app.model.report.program ?? [];
  const most = Math.max(1, ...steps.map((step) => step.seconds ?? 0));
  return h(
    "ol",
    { class: "strip", "aria-label": "From Python to the kernels" },
    steps.map((step) => h("li", null, stepCard(app, step, most))),
  );
}

function stepCard(app, step, most) {
  const go =
    step.title === "kernels"
      ? { screen: "kernels" }
      : { screen: "source", ...(step.stage === null ? {} : { stage: step.stage }) };
  return h(
    "button",
    { class: "step", click: () => app.set(go) },
    h("span", { class: "step-title", title: step.title }, step.title),
    h("span", { class: "step-count" }, format.count(step.count)),
    h("span", { class: "step-time" }, step.seconds === null ? "\u00a0" : format.seconds(step.seconds)),
    bar((step.seconds ?? 0) / most, "thin"),
  );
}

function findings(app) {
  const found = app.model.report.findings ?? [];
  if (!found.length) return h("p", { class: "soft" }, "Nothing stands out.");
  return h(
    "ul",
    { class: "findings" },
    found.slice(0, 7).map((finding) => h("li", { class: finding.severity }, finding1(app, finding))),
  );
}

function finding1(app, finding) {
  const { model } = app;
  const place =
    finding.row !== null
      ? model.where(finding.row)
      : finding.line !== null && model.sources[finding.source]
        ? `${base(model.sources[finding.source].file)}:${finding.line}`
        : "";
  const pick =
    finding.row !== null
      ? pickRow(finding.row)
      : finding.line !== null && finding.source !== null
        ? pickLine(finding.source, finding.line)
        : app.state.pick;
  const source = finding.row !== null ? model.eq.source[finding.row] : finding.source;
  return [
    h(
      "p",
      null,
      h("span", { class: "sign", "aria-hidden": "true" }),
      h("span", { class: "sr" }, finding.severity),
      finding.text,
    ),
    finding.edit && h("p", { class: "edit" }, finding.edit),
    h(
      "p",
      { class: "links" },
      place &&
        h(
          "button",
          { class: "link", click: () => app.set({ screen: "source", pick, ...(source === null ? {} : { source }) }) },
          place,
        ),
      finding.screen &&
        h(
          "button",
          { class: "link", click: () => app.set({ screen: finding.screen, pick }) },
          `show in ${finding.screen}`,
        ),
    ),
  ];
}

function targetTable(app) {
  const { targets } = app.model;
  if (!targets.length) return h("p", { class: "soft" }, "Nothing was compiled.");
  const link = (it) => {
    const t = targets.findIndex((target) => target.name === it.name);
    return h("button", { class: "link", click: () => app.set({ target: t, screen: "kernels" }) }, it.name);
  };
  const shown = columns(app, "summary", "targets", {
    special: { ...special(app), name: { show: link } },
    without: unmeasured(app),
  });
  const rows = targets.map((target) =>
    target.error
      ? [link(target), h("span", { class: "soft" }, target.error)]
      : shown.map((it) => it.show(sideBySide(app, target))),
  );
  return plain(
    "Targets",
    shown.map((it) => it.title),
    rows,
    shown.flatMap((it, c) => (it.number ? [c] : [])),
  );
}

function totals(report) {
  const { totals: all } = report;
  if (!all) return null;
  const rows = Object.entries(all.by_direction ?? {})
    .filter(([, cost]) => cost.flops || cost.bytes)
    .map(([name, cost]) => [
      h("span", { class: `direction ${name}` }, name),
      format.flops(cost.flops),
      format.bytes(cost.bytes),
    ]);
  return [
    plain(
      "Cost by direction",
      ["", "FLOPs", "bytes"],
      [...rows, [h("b", null, "all"), h("b", null, format.flops(all.flops)), h("b", null, format.bytes(all.bytes))]],
      [1, 2],
    ),
    h(
      "p",
      { class: "soft" },
      `${format.number(all.intensity)} FLOP for each byte.`,
      ...(all.left_out ?? []).map((sentence) => ` ${sentence}`),
    ),
  ];
}

function signature(title, values) {
  if (!values?.length) return null;
  const rows = values
    .slice(0, MOST_ARGUMENTS)
    .map((value) => [
      h("code", null, value.name),
      h("code", null, value.type),
      format.bytes(value.bytes),
      [value.donated && h("span", { class: "badge" }, "donated"), value.sharding && h("code", null, value.sharding)],
    ]);
  return [
    h("h2", null, title),
    plain(title, ["", "type", "bytes", ""], rows, [2]),
    values.length > MOST_ARGUMENTS && h("p", { class: "soft" }, `and ${values.length - MOST_ARGUMENTS} more`),
  ];
}
