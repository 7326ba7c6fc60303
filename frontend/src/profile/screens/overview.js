// Screen 1: where did the time go, and what to do about it?

import { copied } from "../../clipboard.js";
import { css, h, put } from "../../dom.js";
import * as format from "../../format.js";
import { plain } from "../../grid.js";
import { inspection } from "../inspections.js";
import { base, pickLine } from "../model.js";

const FEW = 10;

export const overview = {
  id: "overview",
  title: "Overview",
  about: "Where the wall time went, on the host and on the device, and what can be done about it.",

  draw(app, body) {
    const { content } = app.model;
    put(
      body,
      content.notes.map((note) => h("p", { class: "missing", role: "note" }, note)),
      shares(content),
      h(
        "div",
        { class: "columns" },
        h("section", null, h("h2", null, "Findings"), findings(app), h("h2", null, "Longest lines"), longest(app)),
        h("section", null, programs(app), compilations(content), waits(app)),
      ),
    );
  },
};

const TITLES = { host: "the host", device: "the device" };

function shares({ shares: all, totals }) {
  const whole = totals.wall ?? totals.span;
  return h(
    "section",
    { class: "shares", "aria-label": "Shares of the time" },
    h(
      "p",
      { class: "whole" },
      h("b", null, format.seconds(whole)),
      totals.wall === null ? " between the first and the last kernel" : " of wall time",
    ),
    Object.entries(TITLES).map(([of, title]) =>
      stack(
        title,
        all.filter((it) => it.of === of && it.seconds > 0),
        whole,
      ),
    ),
  );
}

/** A bar of parts, and below it what they are. */
function stack(title, parts, whole) {
  if (!parts.length) return null;
  const part = (it, i) =>
    css(h("i", { class: `part of-${it.of}-${i}`, title: it.name }), { width: `${(100 * it.seconds) / whole}%` });
  return h(
    "div",
    { class: "stack-of" },
    h("h2", null, title),
    h("div", { class: "stack", "aria-hidden": "true" }, parts.map(part)),
    h(
      "ul",
      { class: "legend" },
      parts.map((it, i) =>
        h(
          "li",
          null,
          h("span", { class: `key part of-${it.of}-${i}`, "aria-hidden": "true" }),
          `${it.name} `,
          h("b", null, format.seconds(it.seconds)),
          h("span", { class: "soft" }, ` ${format.percent(it.seconds / whole)}`),
        ),
      ),
    ),
  );
}

function findings(app) {
  const { findings: found } = app.model.content;
  if (!found.length) return h("p", { class: "soft" }, "Nothing stands out.");
  return h(
    "ul",
    { class: "findings" },
    found.map((it) =>
      h(
        "li",
        { class: "warning" },
        h(
          "p",
          null,
          h("span", { class: "sign", "aria-hidden": "true" }),
          h("b", null, format.percent(it.share)),
          ` ${it.text}`,
        ),
        it.row !== null && h("p", { class: "links" }, link(app, app.model.lines[it.row])),
      ),
    ),
  );
}

const link = (app, line) =>
  h("button", { class: "link", click: () => app.set({ screen: "lines", pick: pickLine(line) }) }, line.title);

function longest(app) {
  const its = [...app.model.lines].filter((it) => it.seconds > 0).sort((a, b) => b.seconds - a.seconds);
  if (!its.length) return h("p", { class: "soft" }, "The recording has no run of a kernel.");
  return plain(
    "Longest lines",
    ["line", "time", "share", ""],
    its
      .slice(0, FEW)
      .map((it) => [
        link(app, it),
        format.seconds(it.seconds),
        format.percent(it.share),
        h("code", { class: "cut", title: it.text }, it.text),
      ]),
    [1, 2],
  );
}

function programs(app) {
  const { programs: all } = app.model;
  return [
    h("h2", null, "Programs, and how to inspect them"),
    all.slice(0, FEW).map((it) =>
      h(
        "div",
        { class: "program" },
        h(
          "p",
          null,
          h("code", null, h("b", null, it.name)),
          h("span", { class: "soft" }, ` ${format.seconds(it.seconds)} in ${format.plural(it.calls, "call")} `),
          inspection(it, "summary", "Inspect it, with these times"),
        ),
        it.unwritten && h("p", { class: "soft" }, it.unwritten),
        [
          ["shell", it.command],
          ["Python", it.snippet],
        ].map(([where, text]) => text !== null && copyable(where, text)),
      ),
    ),
    all.length > FEW && h("p", { class: "soft" }, `and ${all.length - FEW} more`),
  ];
}

/** A text to be copied: how to inspect a program. */
const copyable = (where, text) =>
  h(
    "div",
    { class: "copyable" },
    h("span", { class: "soft" }, where),
    h("code", null, text),
    h(
      "button",
      { class: "small", "aria-label": `Copy for ${where}`, click: (event) => copied(text, event.currentTarget) },
      "Copy",
    ),
  );

function waits(app) {
  const its = app.model.lines.filter((it) => it.waits > 0).sort((a, b) => b.waited - a.waited);
  if (!its.length) return null;
  return [
    h("h2", null, "Waits of the host for the device"),
    plain(
      "Waits",
      ["line", "times", "took", ""],
      its
        .slice(0, FEW)
        .map((it) => [
          link(app, it),
          format.count(it.waits),
          format.seconds(it.waited),
          h("code", { class: "cut", title: it.text }, it.text),
        ]),
      [1, 2],
    ),
    its.length > FEW && h("p", { class: "soft" }, `and ${its.length - FEW} more`),
  ];
}

function compilations({ compilations: all }) {
  if (!all.length) return null;
  return [
    h("h2", null, "Compilations"),
    plain(
      "Compilations",
      ["function", "times", "took", "the last, because"],
      all
        .slice(0, FEW)
        .map((it) => [
          h("span", { title: it.place }, h("code", null, it.function), it.place && ` ${base(it.place)}`),
          format.count(it.count),
          format.seconds(it.seconds),
          h("span", { title: it.edit }, it.cause),
        ]),
      [1, 2],
    ),
    all.length > FEW && h("p", { class: "soft" }, `and ${all.length - FEW} more`),
  ];
}
