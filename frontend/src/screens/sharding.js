// Screen 7: the mesh as a grid of devices, the shards of a value on it, and the collectives.

import { css, h, put, s } from "../dom.js";
import { Grid } from "../grid.js";
import { pickRow } from "../state.js";
import { about, columns, none, order } from "../tables.js";

export const sharding = {
  ...about("sharding"),
  missing: (app) =>
    app.model.report.mesh || collectivesOf(app).length ? null : "the program runs on one device and has no mesh",
  draw: (app, body) => new Sharding(app, body),
};

const collectivesOf = (app) => app.model.targets[app.state.target]?.collectives ?? [];

class Sharding {
  constructor(app, body) {
    Object.assign(this, { app, body, mesh: app.model.report.mesh });
    this.at = Math.max(0, this.mesh?.values?.findIndex((value) => value.row !== null && app.lit.has(value.row)) ?? 0);
    this.top = h("div", { class: "columns mesh-columns" });
    put(body, this.mesh && this.top, h("h2", null, "Collectives"), this.collectives());
    this.show();
  }

  show() {
    if (!this.mesh) return;
    const { values, axes } = this.mesh,
      value = values[this.at],
      colours = shardColours(value);
    const list = h(
      "div",
      { class: "choices", role: "listbox", "aria-label": "Values" },
      values.map((it, i) =>
        h(
          "button",
          {
            role: "option",
            "aria-selected": String(i === this.at),
            class: i === this.at ? "lit" : "",
            click: () => this.choose(i),
          },
          h("code", null, it.name),
          " ",
          h("span", { class: "soft" }, it.type),
          " ",
          h("code", null, specText(it.spec)),
        ),
      ),
    );
    put(
      this.top,
      h(
        "section",
        null,
        h(
          "h2",
          null,
          "Mesh ",
          h("span", { class: "soft" }, axes.map((axis) => `${axis.name}: ${axis.size} (${axis.type})`).join(" × ")),
        ),
        grid(this.mesh, colours),
      ),
      h(
        "section",
        null,
        h("h2", null, value ? [value.name, " ", h("code", null, value.type)] : "No sharded value"),
        value && arrayPicture(value, colours),
      ),
      h("section", { class: "across" }, h("h2", null, "Values"), list),
    );
  }

  choose(i) {
    this.at = i;
    const { row } = this.mesh.values[i];
    if (row !== null) this.app.select(pickRow(row));
    this.show();
  }

  collectives() {
    const { app } = this,
      items = collectivesOf(app).map((it) => ({
        ...it,
        moved: it.bytes * it.times,
        cause: (it.row !== null && app.model.where(it.row)) || it.line,
      }));
    if (!items.length)
      return h(
        "p",
        { class: "soft" },
        app.model.unavailable(app.state.target, "collectives") ?? none("sharding", "collectives"),
      );
    const badge = (it) =>
      h("span", { class: `badge ${it.asked ? "" : "strong"}` }, it.asked ? "you asked for it" : "by the partitioner");
    const shown = columns(app, "sharding", "collectives", { special: { asked: { show: badge } } });
    this.table = new Grid({
      label: "Collectives",
      items,
      sort: order("sharding", "collectives", shown),
      columns: shown,
      enter: (it) => it.row !== null && app.select(pickRow(it.row)),
      hover: (it) => app.hover(it?.row == null ? null : [it.row]),
      paint: (element, it) => element.classList.toggle("lit", it.row !== null && app.lit.has(it.row)),
    });
    return h("div", { class: "fill short" }, this.table.element);
  }

  changed() {
    return true;
  }

  paint() {
    this.table?.repaint();
  }

  dispose() {
    this.table?.dispose();
  }
}

const specText = (spec) =>
  `P(${(spec ?? []).map((part) => (part === null ? "None" : Array.isArray(part) ? `(${part.join(", ")})` : part)).join(", ")})`;

/** A colour for each device: devices that hold the same part share it. */
function shardColours(value) {
  const parts = [...new Set((value?.shards ?? []).map((shard) => JSON.stringify(shard.index)))],
    colours = new Map();
  for (const shard of value?.shards ?? []) {
    const i = parts.indexOf(JSON.stringify(shard.index));
    colours.set(shard.device, { hue: parts.length > 1 ? (i * 360) / parts.length + 190 : 190, part: i });
  }
  return colours;
}

const tint = (it) => (it ? { "--hue": it.hue } : {});

function grid(mesh, colours) {
  const rows = nested(mesh.devices);
  const cell = (device) =>
    css(
      h("div", { class: `device ${colours.has(device) ? "tinted" : ""}`, role: "cell" }, `${device}`),
      tint(colours.get(device)),
    );
  return h(
    "div",
    { class: "mesh", role: "table", "aria-label": "Devices of the mesh" },
    rows.map((row) => h("div", { class: "mesh-row", role: "row" }, row.map(cell))),
  );
}

/** Device ids as rows: the last axis lies, all before it stand. */
function nested(devices) {
  if (!Array.isArray(devices[0])) return [devices];
  return Array.isArray(devices[0][0]) ? devices.flatMap(nested) : devices;
}

/** The array as a rectangle of its two most divided dimensions. */
function arrayPicture(value, colours) {
  const shape = (/\[([^\]]*)\]/.exec(value.type)?.[1] ?? "")
    .split(",")
    .map((dim) => Number.parseInt(dim, 10))
    .filter((dim) => dim > 0);
  const cut = shape.map((_, d) => new Set(value.shards.map((shard) => shard.index[d]?.join())).size);
  const order = shape
    .map((_, d) => d)
    .sort((a, b) => cut[b] - cut[a] || a - b)
    .slice(0, 2)
    .sort((a, b) => a - b);
  const [down, across] = shape.length > 1 ? order : [null, 0];
  const span = (shard, d) => (d === null || !shard.index[d] ? [0, 1] : shard.index[d].map((x) => x / shape[d]));
  const parts = new Map();
  for (const shard of value.shards)
    parts.set(JSON.stringify(shard.index), [...(parts.get(JSON.stringify(shard.index)) ?? []), shard]);
  const cells = [...parts.values()].map((shards) => {
    const [top, bottom] = span(shards[0], down),
      [left, right] = span(shards[0], across),
      names = shards.map((shard) => shard.device).join(" ");
    const box = s(
      "rect",
      { x: left * 360, y: top * 200, width: (right - left) * 360, height: (bottom - top) * 200, class: "tinted" },
      s("title", null, `devices ${names}: ${JSON.stringify(shards[0].index)}`),
    );
    return s(
      "g",
      { css: tint(colours.get(shards[0].device)) },
      box,
      s(
        "text",
        { x: (left + right) * 180, y: (top + bottom) * 100 + 4 },
        names.length > 14 ? `${shards.length} devices` : names,
      ),
    );
  });
  const axis = (d) => (d === undefined || d === null ? "" : `dimension ${d}: ${shape[d]}, ${cut[d]} parts`);
  return [
    s("svg", { class: "array", viewBox: "-2 -2 364 204", role: "img", "aria-label": `Shards of ${value.name}` }, cells),
    h(
      "p",
      { class: "soft" },
      [axis(down) && `down ${axis(down)}`, axis(across) && `across ${axis(across)}`].filter(Boolean).join("; "),
    ),
  ];
}
