// The skyline: the highest address in use, over time.

/** For every section of the load the span that reaches highest in it, -1 where nothing is held.
 *
 *  A span covers some sections from `first` on. Two stretches of 2^k sections cover the same ones,
 *  so that a note at each of them is enough; notes then go down from stretches to their halves.
 *  This takes O(spans + sections log sections), and needs no sorting.
 */
function findSkyline({ x0, x1, y1 }, time) {
  const sections = time.length - 1;
  if (sections < 1) return new Int32Array(0);
  const levels = 32 - Math.clz32(sections);
  const highest = Array.from({ length: levels }, () => new Int32Array(sections).fill(-1));
  const note = (level, at, span) => {
    const other = level[at];
    if (other < 0 || y1[span] > y1[other]) level[at] = span;
  };
  for (let span = 0; span < y1.length; span++) {
    const first = Math.min(Math.max(upperBound(time, x0[span]) - 1, 0), sections - 1);
    const end = Math.min(Math.max(upperBound(time, x1[span]) - 1, first + 1), sections);
    const k = 31 - Math.clz32(end - first);
    note(highest[k], first, span);
    note(highest[k], end - 2 ** k, span);
  }
  for (let k = levels - 1; k > 0; k--) {
    const half = 2 ** (k - 1);
    for (let at = 0; at < sections; at++) {
      const span = highest[k][at];
      if (span < 0) continue;
      note(highest[k - 1], at, span);
      note(highest[k - 1], at + half, span);
    }
  }
  return highest[0];
}

/** For every column of an area the tallest moment in it, of several the fullest.
 *
 *  `section` has the numbers of these sections, `time` their begins, and `span` the spans that reach
 *  highest in them; -1 where nothing is held. `load` is that of all sections, `times` their begins.
 */
function tallestMoments(skyline, { y1 }, times, load, { x0, perX, columns }) {
  const section = new Int32Array(columns).fill(-1);
  const isBetter = (at, other) => {
    const rise = other < 0 ? 1 : y1[skyline[at]] - y1[skyline[other]];
    return rise > 0 || (rise === 0 && load[at] > load[other]);
  };
  for (let at = Math.max(upperBound(times, x0) - 1, 0); at < skyline.length; at++) {
    const begin = Math.floor((times[at] - x0) * perX);
    if (begin >= columns) break;
    if (skyline[at] < 0) continue;
    const end = Math.min(Math.ceil((times[at + 1] - x0) * perX), columns);
    for (let column = Math.max(begin, 0); column < end; column++) {
      if (isBetter(at, section[column])) section[column] = at;
    }
  }
  return {
    section,
    time: Float64Array.from(section, (at) => times[at]),
    span: Int32Array.from(section, (at) => (at < 0 ? -1 : skyline[at])),
  };
}

/** The first place in a sorted column whose value is greater. */
function upperBound(column, value) {
  let [low, high] = [0, column.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
