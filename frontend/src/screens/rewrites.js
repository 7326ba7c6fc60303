// Screen 3: what each step changed. Ours are matched by equation, XLA's by line.

import { h, put } from "../dom.js";
import { count, plural, seconds } from "../format.js";
import { check, switcher } from "../grid.js";
import { program, withoutMetadata } from "../highlight.js";
import { pickRow } from "../state.js";
import { align, beforeOf, steps } from "../steps.js";
import { VirtualList } from "../virtual.js";
import { about } from "../tables.js";

const BEAT = 2200;
const CONTEXT = 3;

export const rewrites = {
  ...about("rewrites"),
  missing: (app) =>
    steps(app, true).length
      ? null
      : (app.model.unavailable(app.state.target, "passes") ?? "the report has one stage only"),
  draw: (app, body) => new Rewrites(app, body),
};

class Rewrites {
  constructor(app, body) {
    Object.assign(this, { app, body, all: false, only: true, unified: null, word: "", playing: null });
    this.side = h("div", { class: "side" });
    this.main = h("div", { class: "fill" });
    put(body, h("div", { class: "panes narrow-left" }, this.side, this.main));
    this.draw();
  }

  draw() {
    this.listSteps();
    this.compare();
  }

  stages() {
    return steps(this.app, this.all).filter((i) => this.app.model.stages[i].title.toLowerCase().includes(this.word));
  }

  /** The step of the state: the stage itself, or the nearest step before it. */
  current() {
    const found = this.stages(),
      { stage } = this.app.state;
    return found.includes(stage) ? stage : found[0];
  }

  listSteps() {
    const field = h("input", {
      type: "search",
      placeholder: "name of a step",
      "aria-label": "Filter steps",
      input: () => ((this.word = field.value.toLowerCase()), this.fillSteps(), this.compare()),
    });
    field.value = this.word;
    const unchanged = steps(this.app, true).length - steps(this.app, false).length;
    const why = this.app.model.unavailable(this.app.state.target, "passes");
    this.list = h("ol", { class: "steps", "aria-label": "Steps" });
    put(
      this.side,
      h("div", { class: "tools" }, field),
      check(`unchanged (${count(unchanged)})`, this.all, (on) => ((this.all = on), this.draw())),
      this.list,
      why &&
        h(
          "p",
          { class: "missing small-missing" },
          h("strong", null, "XLA's passes are not available for this target: "),
          why,
        ),
    );
    this.fillSteps();
  }

  fillSteps() {
    const { model } = this.app,
      current = this.current();
    put(
      this.list,
      this.stages().map((i) => {
        const stage = model.stages[i],
          delta = stage.count - (model.stages[beforeOf(model, i)]?.count ?? 0);
        return h(
          "li",
          null,
          h(
            "button",
            {
              class: "step-line",
              "aria-current": i === current ? "step" : "false",
              click: () => this.app.set({ stage: i }),
            },
            h("span", { class: "step-name", title: stage.title }, stage.title),
            h(
              "span",
              { class: "num soft" },
              stage.changed ? `${delta > 0 ? "+" : delta < 0 ? "−" : "±"}${count(Math.abs(delta))}` : "unchanged",
            ),
          ),
        );
      }),
    );
  }

  compare() {
    const { app } = this,
      stage = this.current();
    this.list2?.dispose();
    this.list2 = null;
    if (stage === undefined) return put(this.main, h("p", { class: "missing" }, "No step has this name."));
    this.aligned ??= new Map();
    if (!this.aligned.has(stage)) this.aligned.set(stage, align(app.model, stage));
    this.pairs = this.aligned.get(stage);
    const unified = this.unified ?? app.model.stages[stage].kind === "pass",
      shown = this.only ? nearChanges(this.pairs) : this.pairs;
    this.items = unified ? shown.flatMap(inOneColumn) : shown;
    this.list2 = new VirtualList({
      count: this.items.length,
      label: "Before and after",
      draw: (i) => this.line(this.items[i]),
      paint: (el, i) => this.light(el, this.items[i]),
      enter: (i) => this.enter(this.items[i]),
      hover: (i) => app.hover(i === null ? null : this.items[i].rows),
    });
    const names = [
      ["before", beforeOf(app.model, stage)],
      ["after", stage],
    ].map(([word, i]) => h("span", null, `${word}: ${app.model.stages[i].title}`));
    put(
      this.main,
      this.tools(stage, unified),
      h("div", { class: "pair-head" }, names),
      h("div", { class: `fill ${unified ? "unified" : ""}` }, this.list2.element),
    );
    this.reveal();
  }

  tools(stage, unified) {
    const tally = (kind) => this.pairs.filter((pair) => pair.kind === kind).length;
    const its = this.app.model.stages[stage];
    return [
      h(
        "div",
        { class: "tools" },
        h(
          "button",
          { class: "button", id: "play", click: () => this.play(), "aria-pressed": String(Boolean(this.playing)) },
          this.playing ? "❚❚ Pause" : "▶ Play",
        ),
        this.pairs[0]?.kind !== "became" &&
          ["added", "removed", "changed", "moved"].map((kind) =>
            h("span", { class: `tally ${kind}` }, `${count(tally(kind))} ${kind}`),
          ),
        h("span", { class: "gap" }),
        switcher(
          "Columns",
          [
            [false, "beside"],
            [true, "below"],
          ],
          unified,
          (it) => ((this.unified = it), this.compare()),
        ),
        switcher(
          "Lines",
          [
            [true, "changes"],
            [false, "all"],
          ],
          this.only,
          (only) => ((this.only = only), this.compare()),
        ),
      ),
      h(
        "p",
        { class: "caption", "aria-live": "polite" },
        caption(this.app.model, stage, this.pairs),
        its.seconds !== null && h("span", { class: "soft" }, ` (${seconds(its.seconds)})`),
      ),
    ];
  }

  line({ left, right, kind, gap, one, other }) {
    if (gap) return h("div", { class: "pair gap-line" }, `${plural(gap, "unchanged line")}`);
    const side = (text, beside) =>
      h(
        "span",
        { class: "text", title: text },
        text === null
          ? ""
          : beside == null
            ? program(withoutMetadata(text))
            : marked(withoutMetadata(text), withoutMetadata(beside)),
      );
    const sign = h(
      "span",
      { class: "mark", title: kind },
      { added: "+", removed: "−", changed: "~", moved: "↕" }[kind] ?? "",
    );
    if (one !== undefined) return h("div", { class: `pair one ${kind}` }, sign, side(one, other));
    const changed = kind === "changed";
    return h(
      "div",
      { class: `pair ${kind}` },
      sign,
      side(left, changed ? right : null),
      side(right, changed ? left : null),
    );
  }

  light(element, { rows }) {
    element.classList.toggle("lit", rows?.some((row) => this.app.lit.has(row)) ?? false);
    element.classList.toggle("hot", rows?.some((row) => this.app.hot.has(row)) ?? false);
  }

  enter(item) {
    if (item.rows?.length) this.app.select(pickRow(item.rows.at(-1)));
  }

  /** Goes through xlamini's rewrites, one a beat. */
  play() {
    if (this.playing) return this.pause();
    const ours = steps(this.app, false).filter((i) => this.app.model.isJaxpr(i));
    if (!ours.length) return;
    let at = ours.indexOf(this.current());
    if (at === ours.length - 1) at = -1;
    const beat = () => {
      at++;
      if (at >= ours.length) return this.pause();
      this.app.set({ stage: ours[at] });
      this.compare();
    };
    this.playing = setInterval(beat, BEAT);
    beat();
  }

  pause() {
    clearInterval(this.playing);
    this.playing = null;
    this.compare();
  }

  changed(names) {
    if (names.has("stage")) {
      this.fillSteps();
      this.compare();
    } else this.reveal();
    return true;
  }

  reveal() {
    const i = this.items?.findIndex((item) => item.rows?.some((row) => this.app.lit.has(row))) ?? -1;
    if (i >= 0) this.list2.reveal(i);
  }

  paint() {
    this.list2?.repaint();
  }

  dispose() {
    clearInterval(this.playing);
    this.list2?.dispose();
  }
}

function nearChanges(pairs) {
  const near = new Uint8Array(pairs.length);
  pairs.forEach((pair, i) => {
    if (pair.kind !== "same") near.fill(1, Math.max(0, i - CONTEXT), i + CONTEXT + 1);
  });
  const out = [];
  pairs.forEach((pair, i) => {
    if (near[i]) out.push(pair);
    else if (i && !near[i - 1]) out.at(-1).gap++;
    else out.push({ gap: 1 });
  });
  return out;
}

/** A pair as lines one below the other. */
function inOneColumn(pair) {
  if (pair.gap) return [pair];
  const { left, right, kind, rows } = pair;
  if (kind !== "changed") return [{ one: right ?? left, kind, rows }];
  return [
    { one: left, other: right, kind: "removed", rows },
    { one: right, other: left, kind: "added", rows },
  ];
}

/** A line with what differs from the other line marked. */
function marked(text, other) {
  let start = 0,
    end = 0;
  const most = Math.min(text.length, other.length);
  while (start < most && text[start] === other[start]) start++;
  while (end < most - start && text.at(-1 - end) === other.at(-1 - end)) end++;
  return [text.slice(0, start), h("mark", null, text.slice(start, text.length - end)), text.slice(text.length - end)];
}

function caption(model, stage, pairs) {
  const its = model.stages[stage],
    of = model.stages[beforeOf(model, stage)],
    what = model.isJaxpr(stage) ? "equation" : "instruction";
  const rules = model.isJaxpr(stage)
    ? common(model.rowsOf[stage].map((row) => model.eq.rule[row]?.name).filter(Boolean))
    : "";
  const kept = pairs.filter((pair) => pair.kind === "same").length;
  const same =
    pairs[0]?.kind === "became"
      ? "each line stands beside what it became"
      : its.made
        ? "the rest stayed as it was"
        : `${plural(kept, "line")} stayed as they were`;
  return `${its.rewrite ?? its.title} made ${plural(its.count, what)} of ${count(of?.count)}: ${same}${rules ? `; rules that wrote most: ${rules}` : ""}.`;
}

function common(names) {
  const tally = new Map();
  for (const name of names) tally.set(name, (tally.get(name) ?? 0) + 1);
  return [...tally]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 4)
    .map(([name, n]) => (n > 1 ? `${name} ×${n}` : name))
    .join(", ");
}
