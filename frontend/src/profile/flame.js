// The flame graph: where the time of the kernels went by file, function, line, equation and kernel.

/** The tree of a model: each node has `name`, `seconds`, `children` (the longest first), and the line or kernel that it is. */
export function tree(model) {
  const root = node("all kernels", "all");
  for (const kernel of model.kernels) {
    const { line } = kernel;
    const path = [
      [line.file === null ? line.title : model.files[line.file].path, { kind: "file" }],
      ...(line.file === null ? [] : [[line.function || "<module>", { kind: "function" }]]),
      ...(line.file === null ? [] : [[line.title, { kind: "line", line }]]),
      [equation(kernel), { kind: "equation", line }],
      [
        model.programs.length > 1 ? `${kernel.name} of ${kernel.module}` : kernel.name,
        { kind: "kernel", kernel, line },
      ],
    ];
    add(root, kernel.seconds, path);
  }
  return sorted(root);
}

function equation(kernel) {
  if (!kernel.labels) return "no equation known";
  return kernel.inserted ? `put in by the compiler for ${kernel.labels}` : kernel.labels;
}

const node = (name, kind, its = {}) => ({ name, kind, seconds: 0, children: new Map(), ...its });

function add(root, seconds, path) {
  let at = root;
  at.seconds += seconds;
  for (const [name, its] of path) {
    if (!at.children.has(name)) at.children.set(name, { ...node(name, its.kind, its), parent: at });
    at = at.children.get(name);
    at.seconds += seconds;
  }
}

function sorted(it) {
  it.children = [...it.children.values()].sort((a, b) => b.seconds - a.seconds);
  it.children.forEach(sorted);
  return it;
}

/** The path from the root to a node. */
export function pathTo(it) {
  const path = [];
  for (let at = it; at; at = at.parent) path.unshift(at);
  return path;
}

/**
 * The boxes of a tree that is zoomed to a node, with x and width as shares of the whole: what is above it takes all of
 * the width, what is beside it none. Boxes narrower than `least` are left out.
 */
export function layout(focus, least = 0) {
  const path = pathTo(focus);
  const boxes = path.slice(0, -1).map((it, depth) => ({ node: it, depth, x: 0, width: 1 }));
  const place = (it, depth, x, width) => {
    if (width < least) return;
    boxes.push({ node: it, depth, x, width });
    let from = x;
    for (const child of it.children) {
      const share = it.seconds ? (width * child.seconds) / it.seconds : 0;
      place(child, depth + 1, from, share);
      from += share;
    }
  };
  place(focus, path.length - 1, 0, 1);
  return boxes;
}
