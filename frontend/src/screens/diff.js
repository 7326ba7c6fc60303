// Screen 10: two reports. What changed in cost comes first, then kernels, then the text.

import { h, put } from "../dom.js";
import { alignRows, variableless } from "../align.js";
import * as format from "../format.js";
import { Grid, plain, switcher } from "../grid.js";
import { program } from "../highlight.js";
import { load } from "../loading.js";
import { gain, insertions, kernelDiff, match, meet, movers, sameRoof } from "../match.js";
import { base } from "../model.js";
import { pickRow } from "../state.js";
import { VirtualList } from "../virtual.js";
import { about, columns, lacking, none, plainTable, title } from "../tables.js";

const MOST = 12;

export const diff = {
  ...about("diff"),
  draw: (app, body) => new Diff(app, body),
};

class Diff {
  constructor(app, body) {
    Object.assign(this, { app, body, tab: "cost" });
    this.draw();
  }

  draw() {
    const { app } = this,
      before = app.other;
    this.dispose();
    put(
      this.body,
      this.chooser(),
      app.loadError && h("p", { class: "missing", role: "alert" }, app.loadError),
      before && this.result(before),
    );
    this.fillTab?.();
  }

  chooser() {
    const { app } = this,
      input = h("input", {
        type: "file",
        id: "other-file",
        accept: ".json,.html",
        "aria-label": "The other report",
        change: () => input.files[0] && load(app, input.files[0]),
      });
    const name = app.other && [app.otherName ?? app.other.report.name, made(app.other)];
    return h(
      "div",
      { class: `drop ${app.other ? "filled" : ""}` },
      h(
        "label",
        { for: "other-file" },
        app.other
          ? ["before: ", h("b", null, name), " · after: ", h("b", null, app.model.report.name, made(app.model))]
          : "Drop the other report here, or choose its file: ",
      ),
      input,
    );
  }

  result(before) {
    const after = this.app.model;
    this.partner = match(before, after);
    const tabs = switcher(
      "Part",
      [
        ["cost", "cost"],
        ["kernels", "kernels"],
        ["text", "text"],
      ],
      this.tab,
      (tab) => ((this.tab = tab), this.draw()),
    );
    const area = h("div", { class: "fill" });
    this.fillTab = () => {
      this.view = {
        cost: () => costGrid(this.app, before, after),
        kernels: () => kernelChanges(this.app, before, after, this.partner),
        text: () => textDiff(this.app, before, after, this.partner),
      }[this.tab]();
      put(area, this.view.element);
    };
    const totals =
      this.tab === "cost" && h("div", { class: "scroll-x flat" }, totalsTable(before, after, this.partner));
    return [h("div", { class: "tools" }, tabs), totals, totals && h("h2", null, "By line"), area];
  }

  changed() {
    return true;
  }

  paint() {
    this.view?.repaint?.();
  }

  dispose() {
    this.view?.dispose?.();
    this.view = this.fillTab = null;
  }
}

const made = ({ report }) =>
  h(
    "span",
    { class: "soft" },
    ` (xlamini ${report.made_with?.xlamini ?? "?"}, jaxlib ${report.made_with?.jaxlib ?? "?"})`,
  );

function totalsTable(before, after, partner) {
  const a = before.report,
    b = after.report;
  const row = (name, x, y, show) => [name, show(x), show(y), h("span", { class: worse(x, y) }, format.change(x, y))];
  const rows = [
    row("equations", before.rowsOf[before.final]?.length, after.rowsOf[after.final]?.length, format.count),
    row("FLOPs", a.totals?.flops, b.totals?.flops, format.flops),
    row("bytes", a.totals?.bytes, b.totals?.bytes, format.bytes),
    row("peak, planned", a.memory?.peak, b.memory?.peak, format.bytes),
  ];
  for (const target of after.targets.filter((it) => !it.error)) {
    const other = before.targets.find((it) => it.name === target.name && !it.error);
    if (!other) continue;
    const its = [
      ["peak", other.memory?.peak, target.memory?.peak, format.bytes],
      ["kernels", other.kernels.length, target.kernels.length, format.count],
    ];
    const [x, y] = [other.prediction?.seconds, target.prediction?.seconds];
    if (sameRoof(other, target)) its.unshift(["time", x, y, format.seconds]);
    else rows.push([`${target.name}: time`, format.seconds(x), format.seconds(y), "not compared: another roof"]);
    const olds = parts(other);
    parts(target).forEach(([name, now], i) => {
      if (!olds.length) return;
      const then = olds[i][1],
        it = row(`${target.name}: ${name}`, then.seconds, now.seconds, format.seconds);
      rows.push(meet(then, now) ? [...it.slice(0, 3), "within the spread"] : it);
    });
    rows.push(...its.filter(([, x, y]) => x !== y).map(([name, ...rest]) => row(`${target.name}: ${name}`, ...rest)));
  }
  const pairs = partner.size,
    lost = (before.rowsOf[before.final]?.length ?? 0) - pairs,
    made = (after.rowsOf[after.final]?.length ?? 0) - pairs;
  rows.push([
    "matched equations",
    format.count(pairs),
    format.count(pairs),
    `${format.count(lost)} removed, ${format.count(made)} added`,
  ]);
  return plain("Totals", ["", "before", "after", "change"], rows, [1, 2, 3]);
}

/** The measured times of a call, and of those parts of it that no line has: [[name, {seconds, low, high}]]. */
function parts({ kernels, measured: call }) {
  if (!call) return [];
  const inserted = kernels.flatMap((it) => (it.inserted && it.measured ? [it.measured] : [])),
    sum = (name) => inserted.reduce((all, it) => all + it[name], 0),
    idle = (name) => ({ seconds: call[name], low: call[`${name}_low`], high: call[`${name}_high`] });
  return [
    ["measured", call],
    ["put in by XLA", { seconds: sum("seconds"), low: sum("low"), high: sum("high") }],
    ["between kernels", idle("between")],
    ["around kernels", idle("around")],
  ];
}

const worse = (x, y) => (Number.isFinite(x) && Number.isFinite(y) && x !== y ? (y > x ? "more" : "less") : "");

function costGrid(app, before, after) {
  const items = movers(before, after);
  if (!items.length) return { element: h("p", { class: "soft" }, none("diff", "lines")) };
  return new Grid({
    label: "Cost by line",
    items: items.map(named),
    columns: columns(app, "diff", "lines", {
      special: CHANGES,
      without: lacking(items, ["after.measured"]).length ? ["measured"] : [],
    }),
    enter: (it) => it.rows.length && app.select(pickRow(it.rows[0])),
    paint: (element, it) =>
      element.classList.toggle(
        "lit",
        it.rows.some((row) => app.lit.has(row)),
      ),
  });
}

const named = (it) => ({
  ...it,
  place: it.file ? `${base(it.file)}:${it.line}` : "no line",
  state: !it.before ? "new" : !it.after ? "lost" : "",
  text: it.text || it.function,
});

const change = (name, show) => ({
  value: (it) => gain(it.before, it.after, name),
  show: ({ before, after }) => {
    const [x, y] = [before?.[name] ?? 0, after?.[name] ?? 0];
    if ((after ?? before)[name] === null) return h("span", { class: "soft" }, "–");
    if (!gain(before, after, name)) return h("span", { class: "soft" }, "=");
    return [
      h("span", { class: worse(x, y) }, format.change(x, y)),
      h("span", { class: "soft" }, ` ${show(x)} → ${show(y)}`),
    ];
  },
});

const CHANGES = {
  runs: change("runs", format.count),
  flops: change("flops", format.count),
  bytes: change("bytes", format.bytes),
  held: change("held", format.bytes),
  seconds: change("seconds", format.seconds),
  measured: change("measured", format.seconds),
};

function kernelChanges(app, before, after, partner) {
  const parts = after.targets
    .filter((it) => !it.error)
    .flatMap((target) => {
      const other = before.targets.find((it) => it.name === target.name && !it.error);
      if (!other)
        return [h("h2", null, target.name), h("p", { class: "soft" }, "The other report does not have this target.")];
      return [h("h2", null, target.name), ...kernelLists(app, before, after, other, target, partner)];
    });
  return {
    element: h(
      "div",
      { class: "scroll" },
      parts.length ? parts : h("p", { class: "soft" }, "There is no target to compare."),
    ),
  };
}

function kernelLists(app, before, after, other, target, partner) {
  const { same, changed, lost, made } = kernelDiff(other.kernels, target.kernels, partner);
  const list = (kernels, which) =>
    plain(
      "Kernels",
      ["kernel", "equations", "bytes", "time"],
      which
        .slice(0, MOST)
        .map((k) => [
          h("code", null, kernels[k].name),
          format.count(kernels[k].rows.length),
          format.bytes(kernels[k].bytes),
          format.seconds(kernels[k].seconds),
        ]),
      [1, 2, 3],
    );
  const labels = (model, rows) => h("code", null, rows.map((row) => model.eq.label[row]).join(" "));
  const inserted = insertions(before, after, other, target, partner).map(named),
    without = lacking([other, target], ["measured"]),
    insertedColumns = columns(app, "diff", "inserted", { special: CHANGES, without });
  const section = (text, ...children) => h("section", null, h("p", null, text), ...children);
  return [
    h(
      "p",
      null,
      `${format.plural(same, "kernel")} with the same equations, ${format.count(changed.length)} with others`,
    ),
    changed.length > 0 &&
      plain(
        "Changed kernels",
        ["kernel", "joined by", "left by", "time before", "time"],
        changed
          .slice(0, MOST)
          .map((it) => [
            h("code", null, target.kernels[it.after].name),
            labels(after, it.joined),
            labels(before, it.left),
            format.seconds(other.kernels[it.before].seconds),
            format.seconds(target.kernels[it.after].seconds),
          ]),
        [3, 4],
      ),
    inserted.length > 0 && section(title("diff", "inserted"), plainTable("", insertedColumns, inserted.slice(0, MOST))),
    h(
      "div",
      { class: "columns even" },
      section(`${format.plural(lost.length, "kernel")} only before`, list(other.kernels, lost)),
      section(`${format.plural(made.length, "kernel")} only after`, list(target.kernels, made)),
    ),
  ];
}

function textDiff(app, before, after, partner) {
  const alike = (x, y) => variableless(before.eq.text[x]) === variableless(after.eq.text[y]);
  const pairs = alignRows(
    before.rowsOf[before.final] ?? [],
    after.rowsOf[after.final] ?? [],
    (row) => partner.get(row) ?? null,
    alike,
  );
  const shown = pairs.filter((pair) => pair.kind !== "same");
  if (!shown.length) return { element: h("p", { class: "soft" }, "The final programs are the same, up to names.") };
  const text = (model, row) => h("span", { class: "text" }, row === null ? "" : program(model.eq.text[row]));
  const list = new VirtualList({
    count: shown.length,
    label: "Before and after",
    enter: (i) => shown[i].right !== null && app.select(pickRow(shown[i].right)),
    paint: (element, i) => element.classList.toggle("lit", shown[i].right !== null && app.lit.has(shown[i].right)),
    draw: (i) =>
      h(
        "div",
        { class: `pair ${shown[i].kind}` },
        h("span", { class: "mark" }, { added: "+", removed: "−", changed: "~", moved: "↕" }[shown[i].kind]),
        text(before, shown[i].left),
        text(after, shown[i].right),
      ),
  });
  return { element: list.element, repaint: () => list.repaint(), dispose: () => list.dispose() };
}
