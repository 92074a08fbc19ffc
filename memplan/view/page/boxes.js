// What a figure draws of what is in sight: boxes or pixels, names in boxes, and the load.

const QUADS = 4000; // at once: as many as can be drawn in a frame without a graphics card
const NAMES = 250; // written into boxes at once
const THINNEST = 2; // pixels of a quad: WebGL makes the edges of boxes pale

/** Put thin boxes into the raster, and return the numbers of all others.
 *
 *  With `tallest`, the moment in every column that is to be seen, that keeps its full colours.
 */
function split({ x0, x1, y0, y1 }, area, raster, colourOf, tallest = null) {
  const seen = [];
  for (let at = 0; at < x0.length; at++) {
    if (x1[at] <= area.x0 || x0[at] >= area.x1) continue;
    if (y1[at] <= area.y0 || y0[at] >= area.y1) continue;
    seen.push(at);
  }
  const thin = (at) =>
    Math.min((x1[at] - x0[at]) * area.perX, (y1[at] - y0[at]) * area.perY);
  const least = leastSide(seen, thin);
  let box = -1;
  const isTallest =
    tallest && ((column) => x0[box] <= tallest.time[column] && tallest.time[column] < x1[box]);
  const quads = seen.filter((at) => {
    if (thin(at) >= least) return true;
    const left = (x0[at] - area.x0) * area.perX;
    const right = (x1[at] - area.x0) * area.perX;
    const lower = (y0[at] - area.y0) * area.perY;
    const upper = (y1[at] - area.y0) * area.perY;
    box = at;
    raster.add(left, right, lower, upper, colourOf(at), right - left < least ? isTallest : null);
    return false;
  });
  tallest?.span.forEach((at, column) => {
    if (at < 0 || thin(at) >= least) return;
    raster.keep(column, Math.ceil((y1[at] - area.y0) * area.perY) - 1, colourOf(at));
  });
  return quads;
}

/** The shorter side, in cells, from which on boxes are few enough to be quads: 2, 4, 8, ... */
function leastSide(boxes, thin) {
  const count = new Uint32Array(33); // by the octave of the shorter side
  for (const at of boxes) count[Math.min(Math.max(Math.floor(Math.log2(thin(at))), -1), 31) + 1]++;
  let octave = 32;
  const last = Math.log2(THINNEST) + 1;
  for (let quads = count[octave]; octave > last; octave--) {
    quads += count[octave - 1];
    if (quads > QUADS) break;
  }
  return 2 ** (octave - 1);
}

/** The corners of some boxes, cut off at the area: far beyond it WebGL's floats end. */
function corners({ x0, x1, y0, y1 }, which, area) {
  return {
    left: Float64Array.from(which, (at) => Math.max(x0[at], area.x0)),
    right: Float64Array.from(which, (at) => Math.min(x1[at], area.x1)),
    bottom: Float64Array.from(which, (at) => Math.max(y0[at], area.y0)),
    top: Float64Array.from(which, (at) => Math.min(y1[at], area.y1)),
  };
}

/** Names for the largest boxes, in the middle of what can be seen of them. */
function placeNames(memory, plan, boxes, colours, view, { width, height }) {
  const perX = width / (view.x1 - view.x0);
  const perY = height / (view.y1 - view.y0);
  const { x0, x1, y0, y1 } = plan;
  const roomy = [];
  for (const span of boxes) {
    const [left, right] = [Math.max(x0[span], view.x0), Math.min(x1[span], view.x1)];
    const [low, high] = [Math.max(y0[span], view.y0), Math.min(y1[span], view.y1)];
    const [wide, tall] = [(right - left) * perX, (high - low) * perY];
    const row = memory.row[span];
    if (wide < 24 || tall < 13 || isFaint(colours[row])) continue;
    const text = fitted(memory.name[row], wide - 4);
    if (!text) continue;
    const place = { x: (left + right) / 2, y: (low + high) / 2 };
    roomy.push({ ...place, text, ink: inkOn(colours[row]), size: wide * tall });
  }
  roomy.sort((a, b) => b.size - a.size).splice(NAMES);
  return roomy;
}

/** The load: every section, or the greatest load of every pixel where there are more. */
function sampleLoad({ loadTime: time, loadHeight: height }, x0, x1, columns) {
  const sections = height.length;
  const first = Math.max(upperBound(time, x0) - 1, 0);
  const last = Math.min(upperBound(time, x1), sections);
  const [x, y] = [[], []];
  if (last - first <= 2 * columns) {
    for (let at = first; at < last; at++) {
      x.push(time[at]);
      y.push(height[at]);
    }
  } else {
    const step = (x1 - x0) / columns;
    for (let at = first; at < last; ) {
      const begin = Math.max(time[at], x0);
      const end = begin + step;
      let most = height[at++];
      while (at < last && time[at] < end) most = Math.max(most, height[at++]);
      x.push(begin);
      y.push(most);
    }
  }
  // There is always a point, because Bokeh's steps do not end without any.
  x.push(time[last] ?? x0);
  y.push(0);
  return { x, y };
}
