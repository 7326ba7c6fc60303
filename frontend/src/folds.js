// Runs of lines with one named scope, as a tree of folds.

/**
 * The items to show: {line} for a line, and for each run of a scope {scope, key, depth, open, lines}. `rows` are the rows of each line,
 * `scopeOf(row)` is a path such as "model/layer", `open` the keys that are unfolded. A line without rows belongs to the run around it.
 */
export function folded(rows, scopeOf, open) {
  const paths = rows.map((its) => (its.length ? scopeOf(its[0]).split("/").filter(Boolean) : null));
  inherit(paths);
  const items = [];
  runs(paths, 0, paths.length, 0, open, items);
  return items;
}

function inherit(paths) {
  let last = [];
  for (let i = 0; i < paths.length; i++) {
    if (paths[i]) last = paths[i];
    else {
      const next = paths.slice(i, i + 8).find(Boolean) ?? [];
      paths[i] = common(last, next);
    }
  }
}

function common(a, b) {
  let n = 0;
  while (n < a.length && n < b.length && a[n] === b[n]) n++;
  return a.slice(0, n);
}

function runs(paths, from, to, depth, open, items) {
  for (let i = from; i < to;) {
    const scope = paths[i][depth];
    if (scope === undefined) {
      items.push({ line: i++ });
      continue;
    }
    let end = i;
    while (end < to && paths[end][depth] === scope) end++;
    const key = `${i}/${depth}`,
      isOpen = open.has(key);
    items.push({ scope, key, depth, open: isOpen, lines: Array.from({ length: end - i }, (_, k) => i + k) });
    if (isOpen) runs(paths, i, end, depth + 1, open, items);
    i = end;
  }
}
