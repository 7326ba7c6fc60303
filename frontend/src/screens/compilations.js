// Screen 9: what this process compiled for the function, by call site and cause.

import { h, put } from "../dom.js";
import * as format from "../format.js";
import { pickLine } from "../state.js";
import { base } from "../model.js";
import { about, columns, none, plainTable } from "../tables.js";

const STEPS = ["trace", "lower", "compile"];

export const compilations = {
  ...about("compilations"),
  missing: (app) => (app.model.report.compilations?.length ? null : none("compilations", "compilations")),
  draw(app, body) {
    const all = app.model.report.compilations,
      sites = by(all, (it) => it.site);
    put(
      body,
      h("p", null, `${format.plural(all.length, "compilation")}, ${format.seconds(cost(all))} in all.`),
      [...sites].sort((a, b) => cost(b[1]) - cost(a[1])).map(([site, its]) => siteBlock(app, site, its)),
    );
  },
};

const cost = (its) => its.reduce((sum, it) => sum + STEPS.reduce((all, step) => all + (it.seconds?.[step] ?? 0), 0), 0);

function by(items, key) {
  const out = new Map();
  for (const item of items) out.set(key(item), [...(out.get(key(item)) ?? []), item]);
  return out;
}

function siteBlock(app, site, its) {
  const [, file, line] = /^(.*):(\d+)$/.exec(site) ?? [],
    source = app.model.sources.findIndex((it) => file && base(it.file) === base(file));
  const title =
    source >= 0
      ? h(
          "button",
          { class: "link", click: () => app.set({ screen: "source", source, pick: pickLine(source, Number(line)) }) },
          site,
        )
      : h("span", null, site || "no line");
  const causes = [...by(its, (it) => it.cause?.kind ?? "")].sort((a, b) => cost(b[1]) - cost(a[1]));
  return h(
    "details",
    { class: "site", open: true },
    h(
      "summary",
      null,
      title,
      h(
        "span",
        { class: "soft" },
        ` ${its[0].function} · ${format.plural(its.length, "compilation")} · ${format.seconds(cost(its))}`,
      ),
    ),
    causes.map(([kind, some]) => causeBlock(app, kind, some)),
  );
}

function causeBlock(app, kind, its) {
  const edits = [...new Set(its.map((it) => it.cause?.edit).filter(Boolean))];
  return h(
    "div",
    { class: "cause" },
    h(
      "p",
      null,
      h("span", { class: "badge strong" }, kind || "unknown"),
      ` ${format.plural(its.length, "time")}, ${format.seconds(cost(its))}`,
      edits.map((edit) => h("span", { class: "edit" }, ` — ${edit}`)),
    ),
    plainTable(`Compilations: ${kind}`, columns(app, "compilations", "compilations"), its),
  );
}
