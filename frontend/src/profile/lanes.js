// Runs that go on beside each other are drawn in lanes of their own.

/**
 * The lanes of runs that are sorted by their starts: for each device as few as are needed, each [{device, runs}] with
 * the numbers of runs of which none begins before the one before it has ended.
 */
export function pack(device, start, end) {
  const lanes = new Map();
  for (let i = 0; i < device.length; i++) {
    if (!lanes.has(device[i])) lanes.set(device[i], []);
    const its = lanes.get(device[i]);
    let lane = its.find((it) => end[it.at(-1)] <= start[i]);
    if (!lane) its.push((lane = []));
    lane.push(i);
  }
  return [...lanes].sort(([a], [b]) => a - b).flatMap(([of, its]) => its.map((runs) => ({ device: of, runs })));
}

/** The first of a lane's runs that ends after a time, as its place in the lane. */
export function firstAfter(lane, end, time) {
  let low = 0,
    high = lane.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[lane[middle]] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The run of a lane at a time, or within `near` of it; null for none. */
export function at(lane, start, end, time, near) {
  const i = lane[firstAfter(lane, end, time - near)];
  return i !== undefined && start[i] <= time + near ? i : null;
}

/** Times for the marks of an axis, from `low` to `high`, about `count` of them, at steps of 1, 2 or 5 times a power of ten. */
export function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((it) => it * power >= rough) * power;
  const out = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) out.push(i * step);
  return { step, at: out };
}

/** A part of the whole, zoomed by a factor about a time that stays where it is. */
export function zoomed({ from, to }, factor, about, whole, least = 50) {
  const span = Math.min(whole, Math.max(least, (to - from) * factor));
  const share = to > from ? (about - from) / (to - from) : 0.5;
  return held(about - share * span, span, whole);
}

/** A part of the whole, moved by a time. */
export const moved = ({ from, to }, by, whole) => held(from + by, to - from, whole);

function held(from, span, whole) {
  const begin = Math.max(0, Math.min(whole - span, from));
  return { from: begin, to: begin + span };
}
