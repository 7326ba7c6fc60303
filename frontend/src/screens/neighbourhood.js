// Screen 12: the only picture of a graph, a small one; whole graphs are exported.

import * as dagre from "@dagrejs/dagre";
import { h, put, s } from "../dom.js";
import { dot, download, modelExplorer, perfetto } from "../exports/graphs.js";
import { plural } from "../format.js";
import { check } from "../grid.js";
import { neighbourhood as graphAround, users } from "../neighbours.js";
import { pickRow } from "../state.js";
import { about } from "../tables.js";

const HEIGHT = 42;
const GLYPH = 7.3;

export const neighbourhood = {
  ...about("neighbourhood"),
  draw: (app, body) => new Neighbourhood(app, body),
};

class Neighbourhood {
  constructor(app, body) {
    Object.assign(this, { app, body, fold: false });
    this.draw();
  }

  /** The row of the choice in the stage of the state, or where it is. */
  centre() {
    const { model, state, lit, choice } = this.app;
    if (!choice?.rows.length) return null;
    const stage = model.isJaxpr(state.stage) ? state.stage : model.final;
    const exact = choice.rows.find((row) => model.eq.stage[row] === stage);
    return exact ?? [...lit].filter((row) => model.eq.stage[row] === stage).sort((a, b) => a - b)[0] ?? choice.rows[0];
  }

  draw() {
    const { app } = this,
      { model } = app,
      row = this.centre();
    put(this.body, this.tools());
    if (row === null)
      return this.body.append(
        h(
          "p",
          { class: "missing" },
          "Choose an equation: with ",
          h("kbd", null, "j"),
          " and ",
          h("kbd", null, "k"),
          ", with a click on another screen, or by search.",
        ),
      );
    const graph = graphAround(model, row, users(model, model.eq.stage[row]), { fold: this.fold });
    const host = h("div", { class: "graph" }, picture(app, graph, row));
    this.body.append(
      host,
      (graph.left > 0 &&
        h(
          "p",
          { class: "soft" },
          `${plural(graph.left, "equation")} more within two steps ${graph.left === 1 ? "is" : "are"} not drawn.`,
        )) ||
        "",
    );
    host.querySelector(".centre")?.scrollIntoView({ block: "center", inline: "center" });
  }

  tools() {
    const { app } = this,
      { model, state } = app,
      stage = model.isJaxpr(state.stage) ? state.stage : model.final,
      name = model.report.name;
    const button = (text, make, ending, type) =>
      h("button", { class: "button", click: () => download(`${name}.${ending}`, make(), type) }, text);
    return h(
      "div",
      { class: "tools" },
      check("fold other scopes", this.fold, (on) => ((this.fold = on), this.draw())),
      h("span", { class: "gap" }),
      h("span", { class: "soft" }, `export ${model.stages[stage]?.title ?? ""}:`),
      button("dot", () => dot(model, stage), "dot", "text/vnd.graphviz"),
      button("Model Explorer", () => modelExplorer(model, stage), "graph.json", "application/json"),
      button("Perfetto", () => perfetto(model), "trace.json", "application/json"),
    );
  }

  changed() {
    this.draw();
    return true;
  }
}

function picture(app, graph, centre) {
  const layout = new dagre.graphlib.Graph()
    .setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: 12, marginy: 12 })
    .setDefaultEdgeLabel(() => ({}));
  const labels = new Map(graph.nodes.map((node, i) => [node.id, { ...label(app.model, node), key: `n${i}` }]));
  for (const { key, lines } of labels.values())
    layout.setNode(key, { width: Math.max(...lines.map((line) => line.length), 8) * GLYPH + 18, height: HEIGHT });
  for (const [from, to] of graph.edges) layout.setEdge(labels.get(from).key, labels.get(to).key);
  dagre.layout(layout);
  const { width, height } = layout.graph();
  return s(
    "svg",
    { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Neighbourhood" },
    s(
      "defs",
      null,
      s(
        "marker",
        { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
        s("path", { d: "M0 0L8 4L0 8z" }),
      ),
    ),
    layout
      .edges()
      .map((edge) => s("path", { class: "edge", d: path(layout.edge(edge).points), "marker-end": "url(#arrow)" })),
    graph.nodes.map((node) => drawn(app, node, labels.get(node.id), layout, centre)),
  );
}

function label(model, { rows, scope }) {
  const { eq } = model,
    row = rows[0];
  if (rows.length > 1) return { lines: [clip(scope ?? eq.primitive[row]), plural(rows.length, "equation")] };
  return {
    lines: [
      clip(eq.text[row].split(" = ")[0].trim() + " = " + eq.primitive[row]),
      clip(model.where(row) || eq.scope[row] || " "),
    ],
  };
}

const clip = (text) => (text.length > 34 ? `${text.slice(0, 33)}…` : text);
const path = ([first, ...rest]) => `M${first.x} ${first.y}${rest.map((point) => `L${point.x} ${point.y}`).join("")}`;

function drawn(app, { rows }, { key, lines }, layout, centre) {
  const { x, y, width } = layout.node(key),
    here = rows.includes(centre),
    go = () => app.select(pickRow(rows[0]));
  const name = `${app.model.eq.direction[rows[0]]}`;
  return s(
    "g",
    {
      class: `node ${here ? "centre" : ""}`,
      tabindex: 0,
      role: "button",
      "aria-label": lines.join(", "),
      click: go,
      keydown: (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), go()),
    },
    s("rect", { x: x - width / 2, y: y - HEIGHT / 2, width, height: HEIGHT, rx: 6 }),
    s("rect", {
      class: `stripe direction ${name}`,
      x: x - width / 2,
      y: y - HEIGHT / 2 + 6,
      width: 3,
      height: HEIGHT - 12,
    }),
    s("text", { x: x - width / 2 + 10, y: y - 3 }, lines[0]),
    s("text", { class: "second", x: x - width / 2 + 10, y: y + 13 }, lines[1]),
    s(
      "title",
      null,
      rows
        .map((row) => app.model.eq.text[row])
        .slice(0, 8)
        .join("\n"),
    ),
  );
}
