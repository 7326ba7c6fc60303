// The steps from program to program, what each is compared with, and what it changed.

import { alignLines, alignRows, alignTranslated, variableless } from "./align.js";

/** The stages that were made of another stage with text; those that changed nothing only if `all`. */
export function steps(app, all) {
  const { model, state } = app;
  return model.stages.flatMap((stage, i) => {
    const here =
      ["jaxpr", "stablehlo", "pass", "hlo"].includes(stage.kind) &&
      (stage.target === null || stage.target === state.target);
    return here && beforeOf(model, i) !== null && (all || stage.changed) ? [i] : [];
  });
}

/**
 * The stage that a step is compared with. A pass has only the lines that it made and that the next one takes away: it is compared with the
 * pass before it that changed something, and what is whole with what is whole.
 */
export function beforeOf(model, stage) {
  const { stages } = model,
    whole = (i) => stages[i].kind !== "pass" || stages[i].gone === undefined;
  let of = stages[stage].of;
  if (whole(stage)) while (of !== null && !whole(of)) of = stages[of].of;
  else if (of === null || stages[of].kind !== "pass") return null; // the program as the compiler got it
  return of;
}

/** The pairs of a step as {left, right, kind, rows}: texts or null. */
export function align(model, stage) {
  const its = model.stages[stage],
    of = beforeOf(model, stage),
    before = model.stages[of];
  if (model.isJaxpr(stage) && model.isJaxpr(of)) return alignEquations(model, stage, of);
  if (its.made) return its.changed ? alignTexts(part(before, before.gone), part(its, its.made)) : [];
  return alignTexts(
    before,
    its,
    language(before) === language(its) ? alignLines : (left, right, ...rows) => alignTranslated(...rows),
  );
}

const language = ({ kind }) => (kind === "pass" ? "hlo" : kind);

const part = ({ lines, rows }, some) => ({ lines: some.map((i) => lines[i]), rows: some.map((i) => rows[i]) });

function alignEquations(model, stage, of) {
  const { eq } = model;
  const ancestor = (row) => {
    let up = eq.parent[row];
    while (up !== null && eq.stage[up] > of) up = eq.parent[up];
    return up !== null && eq.stage[up] === of ? up : null;
  };
  const alike = (a, b) => variableless(eq.text[a]) === variableless(eq.text[b]);
  const text = (row) => (row === null ? null : "  ".repeat(eq.depth[row]) + eq.text[row]);
  return alignRows(model.rowsOf[of], model.rowsOf[stage], ancestor, alike).map(({ left, right, kind }) => ({
    left: text(left),
    right: text(right),
    kind,
    rows: [left, right].filter((row) => row !== null),
  }));
}

function alignTexts(before, after, how = alignLines) {
  return how(before.lines, after.lines, before.rows, after.rows).map(({ left, right, kind }) => ({
    left: left === null ? null : before.lines[left],
    right: right === null ? null : after.lines[right],
    kind,
    rows: (right === null ? before.rows[left] : after.rows[right]) ?? [],
  }));
}
