// One state object. What a link must keep is in the URL fragment: screen, stage, target, choice and a few switches.

export const DEFAULTS = { screen: "summary", stage: null, target: 0, pick: null, heat: "flops", source: 0, tab: null };
const NUMBERS = new Set(["stage", "target", "source"]);

/** The state that a fragment such as "#screen=source&pick=row:3" stands for; `defaults` has its names. */
export function fromFragment(fragment, defaults = DEFAULTS) {
  const state = { ...defaults };
  for (const [name, value] of new URLSearchParams(fragment.replace(/^#/, ""))) {
    if (!(name in defaults)) continue;
    state[name] = NUMBERS.has(name) ? Math.max(0, Number.parseInt(value, 10) || 0) : value;
  }
  return state;
}

/** The fragment of a state; defaults are left out. */
export function toFragment(state, defaults = DEFAULTS) {
  const words = new URLSearchParams();
  for (const name of Object.keys(defaults)) {
    if (state[name] !== defaults[name] && state[name] !== null) words.set(name, state[name]);
  }
  return `#${words.toString().replaceAll("%3A", ":")}`;
}

/** A choice as text: "row:3", "line:0:12", "kernel:1:4" (target, kernel), "scope:model/layer". */
export const pickRow = (row) => `row:${row}`;
export const pickLine = (source, line) => `line:${source}:${line}`;
export const pickKernel = (target, kernel) => `kernel:${target}:${kernel}`;

/** What a choice names: {kind, rows, …}, or null where the report has no such thing. */
export function resolve(model, pick) {
  if (!pick) return null;
  const [kind, ...rest] = pick.split(":");
  const [a, b] = rest.map(Number);
  if (kind === "row") return a < model.n ? { kind, row: a, rows: [a] } : null;
  if (kind === "line") return { kind, source: a, line: b, rows: model.sites.get(`${a}:${b}`) ?? [] };
  if (kind === "kernel") {
    const kernel = model.targets[a]?.kernels?.[b];
    return kernel ? { kind, target: a, index: b, kernel, rows: kernel.rows } : null;
  }
  if (kind !== "scope") return null;
  const scope = rest.join(":");
  return { kind, scope, rows: inScope(model, scope) };
}

function inScope(model, scope) {
  const rows = model.rowsOf[model.final] ?? [];
  return rows.filter((row) => model.eq.scope[row] === scope || model.eq.scope[row].startsWith(`${scope}/`));
}
