// The profile with the indexes that the screens need: from a line to its kernels, and from a kernel to its runs in sight.

import schema from "../../../xlamini/inspection/assets/profile_schema.json" with { type: "json" };
import { pack } from "./lanes.js";

const COLOURS = 8;

/** The content itself if this page can read it. */
export function checked(content) {
  if (content?.kind !== "profile") throw new Error("This JSON is not the content of a profile's page.");
  if (content.schema !== schema.version) {
    throw new Error(
      `The profile has schema ${content.schema}, and this page reads schema ${schema.version}. Use the page of the version that made it.`,
    );
  }
  return content;
}

/** The model of a profile. Lines and kernels know their numbers, `i`; the lines that took longest have a colour. */
export function build(content) {
  const { files } = content;
  const texts = files.map((file) => new Map(file.numbers.map((number, i) => [number, file.texts[i]])));
  const all = content.totals.kernels || 1;
  const lines = rows(content.lines).map((it) => ({
    ...it,
    title: it.file === null ? it.name : `${base(files[it.file].path)}:${it.line}`,
    text: texts[it.file]?.get(it.line)?.trim() ?? "",
    share: it.seconds / all,
    kernels: [],
  }));
  const kernels = rows(content.kernels).map((it) => ({
    ...it,
    line: lines[it.row],
    module: content.programs[it.program].name,
    each: it.seconds / it.runs,
    share: it.seconds / all,
  }));
  for (const kernel of kernels) kernel.line.kernels.push(kernel.i);
  [...lines]
    .sort((a, b) => b.seconds - a.seconds)
    .forEach((it, i) => (it.colour = it.seconds > 0 && i < COLOURS ? i : null));
  return { content, files, lines, kernels, programs: content.programs, ...drawn(content, lines) };
}

/** Columns as rows that know their numbers. */
export function rows(columns) {
  const names = Object.keys(columns);
  return columns.name.map((_, i) => ({ i, ...Object.fromEntries(names.map((name) => [name, columns[name][i]])) }));
}

/** The runs and the activities of the host with their times in nanoseconds, and the lanes that they are drawn in. */
function drawn({ timeline, host }, lines) {
  const runs = { ...times(timeline), kernel: timeline.kernel };
  const line = host.row.map((row) => (row === null ? null : lines[row]));
  const activities = { ...times(host), line, bytes: host.bytes, name: host.name.map((name) => host.names[name]) };
  const lanes = pack(timeline.device, runs.start, runs.end).map(({ device, runs: its }) => ({
    title: timeline.devices[device],
    runs: its,
  }));
  const hostLanes = pack(host.lane, activities.start, activities.end).map(({ device, runs: its }) => ({
    title: host.lanes[device],
    runs: its,
  }));
  return { runs, activities, lanes, hostLanes };
}

/** Starts and ends from gaps and durations. */
export function times({ gap, duration }) {
  const start = new Float64Array(gap.length),
    end = new Float64Array(gap.length);
  let at = 0;
  for (let i = 0; i < gap.length; i++) {
    at += gap[i];
    start[i] = at;
    end[i] = at + duration[i];
  }
  return { start, end };
}

/** What a choice names: {kind, kernels, lines, …}, or null where the profile has no such thing. */
export function resolve(model, pick) {
  const [kind, number] = (pick ?? "").split(":");
  if (kind === "line") {
    const line = model.lines[number];
    return line ? { kind, line, kernels: new Set(line.kernels), lines: new Set([line.i]) } : null;
  }
  if (kind !== "kernel" || !model.kernels[number]) return null;
  const kernel = model.kernels[number];
  return { kind, kernel, line: kernel.line, kernels: new Set([kernel.i]), lines: new Set([kernel.line.i]) };
}

export const pickLine = (line) => `line:${line.i}`;
export const pickKernel = (kernel) => `kernel:${kernel.i}`;

/** The last part of a path. */
export const base = (path) => String(path).split(/[\\/]/).pop();
