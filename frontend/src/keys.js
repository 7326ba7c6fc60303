// Keys that work on every screen.

import { openHelp } from "./help.js";
import { pickRow } from "./state.js";

const ACTIONS = {
  "/": (app) => app.search.open(),
  "?": (app) => openHelp(app),
  "[": (app) => stage(app, -1),
  "]": (app) => stage(app, 1),
  j: (app) => equation(app, 1),
  k: (app) => equation(app, -1),
  s: (app) => app.set({ screen: "source" }),
  g: (app) => app.set({ screen: "neighbourhood" }),
  Escape: (app) => app.select(null),
};

/** Acts on a key, unless it is typed into a field or belongs to a dialog. */
export function keys(app, event, actions = ACTIONS) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest?.("input, select, textarea, dialog[open]")) return;
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action(app);
}

/** The next or previous stage that has text for the target; on the screen of rewrites, the next that is listed there. */
export function stage(app, step) {
  const stages = app.view?.stages?.() ?? app.model.stagesFor(app.state.target);
  const at = stages.indexOf(app.state.stage);
  const next = stages[Math.max(0, Math.min(stages.length - 1, at < 0 ? 0 : at + step))];
  if (next !== undefined) app.set({ stage: next });
}

/** The next or previous equation of the stage, or of the final program if the stage has none of its own. */
export function equation(app, step) {
  if (app.view?.step?.(step)) return;
  const { model, state } = app;
  const rows = model.rowsOf[model.isJaxpr(state.stage) ? state.stage : model.final] ?? [];
  if (!rows.length) return;
  const exact = rows.indexOf(app.choice?.row);
  const at = exact >= 0 ? exact : rows.findIndex((row) => app.lit.has(row));
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step;
  if (rows[next] !== undefined) app.select(pickRow(rows[next]));
}
