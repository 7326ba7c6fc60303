// Strokes of a pen as the network knows digits: 8x8 numbers from 0 to 1, as tall as the image, with as much ink.

const FINE = 32; // cells along a side, of which 4x4 are one number
const WIDEST = 28;
const INK = 310; // cells that a digit of the training set covers, on the average

/** The image of strokes, each a list of points [x, y]; null if there are none. */
export function imageOf(strokes) {
  const points = strokes.flat();
  if (points.length === 0) return null;
  let [thin, bold] = [0.5, 6];
  for (let i = 0; i < 12; i++) {
    const radius = (thin + bold) / 2;
    if (count(cellsOf(strokes, radius)) < INK) thin = radius;
    else bold = radius;
  }
  return blocksOf(cellsOf(strokes, thin));
}

/** The fine cells that a pen of this radius inks. */
function cellsOf(strokes, radius) {
  const segments = placed(strokes, radius).flatMap((s) => s.map((p, i) => [p, s[Math.min(i + 1, s.length - 1)]]));
  const cells = new Uint8Array(FINE * FINE);
  for (let y = 0; y < FINE; y++)
    for (let x = 0; x < FINE; x++)
      if (segments.some(([a, b]) => distance([x + 0.5, y + 0.5], a, b) <= radius)) cells[y * FINE + x] = 1;
  return cells;
}

/** The strokes as large as the image without the pen's radius, in the middle. */
function placed(strokes, radius) {
  const [xs, ys] = [0, 1].map((k) => strokes.flat().map((p) => p[k]));
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const fit = (room, length) => (length > 0 ? (room - 2 * radius) / length : Infinity);
  const scale = Math.min(fit(FINE, bottom - top), fit(WIDEST, right - left));
  const by = Number.isFinite(scale) ? scale : 1;
  const [x0, y0] = [(left + right) / 2, (top + bottom) / 2];
  return strokes.map((s) => s.map(([x, y]) => [FINE / 2 + (x - x0) * by, FINE / 2 + (y - y0) * by]));
}

/** The distance of a point from the segment between two others. */
function distance([x, y], [ax, ay], [bx, by]) {
  const [dx, dy] = [bx - ax, by - ay];
  const length = dx * dx + dy * dy;
  const t = length > 0 ? Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / length)) : 0;
  return Math.hypot(x - ax - t * dx, y - ay - t * dy);
}

function count(cells) {
  return cells.reduce((sum, cell) => sum + cell, 0);
}

/** The share of ink in each block of 4x4 cells. */
function blocksOf(cells) {
  const image = new Float32Array(64);
  cells.forEach((cell, i) => {
    image[8 * (Math.floor(i / FINE) >> 2) + ((i % FINE) >> 2)] += cell / 16;
  });
  return image;
}
