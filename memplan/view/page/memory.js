// What the page shows: the columns of `data.py`, and questions about them.
//
// A buffer is a row. It holds one span of memory, or several where it has gaps. Numbers with an `x`
// are times and those with a `y` are addresses, as floats in the units of the axes.

class Memory {
  constructor(data) {
    const { buffers, load, spans } = data;
    this.unit = data.unit;
    this.origin = BigInt(data.origin);
    this.capacity = data.capacity === null ? null : BigInt(data.capacity);
    this.bound = BigInt(data.bound);
    this.classes = data.classes;
    this.scale = data.scale;

    this.name = buffers.name;
    this.count = this.name.length;
    for (const column of ["start", "end", "size"]) this[column] = unpack(buffers[column]);
    for (const column of ["tensors", "module", "made_by", "used_by", "line"]) {
      this[column] = decode(buffers[column]);
    }
    this.kind = this._class("kind");
    this.operator = this._class("operator");
    this.bySize = unpack(buffers.by_size);
    this.rank = new Int32Array(this.count); // in that order
    this.bySize.forEach((row, rank) => (this.rank[row] = rank));

    this.row = spans ? unpack(spans.buffer) : Int32Array.from({ length: this.count }, (_, i) => i);
    const [begin, end] = spans
      ? [unpack(spans.start), unpack(spans.end)]
      : [this.start, this.end];
    this.lower = spans ? unpack(spans.lower) : new Int32Array(this.count);
    this.upper = spans ? unpack(spans.upper) : this.size;
    this.x0 = floats(begin, this.origin);
    this.x1 = floats(end, this.origin);

    this.loadTime = floats(unpack(load.time), this.origin);
    this.loadBytes = unpack(load.bytes);
    this.loadHeight = floats(this.loadBytes, 0n, this.unit.bytes);
    this.loadPeak = BigInt(load.peak);
    this.naive = BigInt(data.naive);
    this.best = data.best;
    this.plans = data.plans.map((plan) => new Plan(plan, this));
  }

  _class(which) {
    return this.classes[which] ? decode(this.classes[which]) : () => "";
  }

  /** The exact time of a place on the time axis. */
  time(x) {
    return BigInt(Math.floor(x)) + this.origin;
  }

  /** What a span holds, exactly. */
  held(span) {
    return BigInt(this.upper[span]) - BigInt(this.lower[span]);
  }

  /** The spans of a buffer: one, or several where it has gaps. */
  spansOf(row) {
    if (!this._spansOf) {
      this._spansOf = Array.from({ length: this.count }, () => []);
      this.row.forEach((owner, span) => this._spansOf[owner].push(span));
    }
    return this._spansOf[row];
  }

  /** The spans at a place on the time axis, the most bytes first, ties by name. */
  live(x) {
    const found = [];
    for (let span = 0; span < this.row.length; span++) {
      if (this.x0[span] <= x && x < this.x1[span]) {
        found.push({ row: this.row[span], bytes: this.held(span) });
      }
    }
    const { rank } = this;
    return found.sort((a, b) => {
      if (a.bytes !== b.bytes) return a.bytes > b.bytes ? -1 : 1;
      return rank[a.row] - rank[b.row];
    });
  }

  /** For every row whether its name, or that of a tensor in it, has the text in it. */
  search(text) {
    const wanted = text.toLowerCase();
    const matches = new Uint8Array(this.count);
    let count = 0;
    for (let row = 0; row < this.count; row++) {
      const found =
        this.name[row].toLowerCase().includes(wanted) ||
        this.tensors(row).toLowerCase().includes(wanted);
      if (found) count += matches[row] = 1;
    }
    return { matches, count };
  }
}

class Plan {
  constructor(data, memory) {
    this.memory = memory;
    this.name = data.name;
    this.verdict = data.verdict;
    this.grade = data.grade;
    this.fault = data.fault;
    this.peak = BigInt(data.peak);
    this.offset = unpack(data.offset);
    const { unit, row, lower, upper } = memory;
    this.x0 = memory.x0;
    this.x1 = memory.x1;
    this.y0 = new Float64Array(row.length);
    this.y1 = new Float64Array(row.length);
    for (let span = 0; span < row.length; span++) {
      const base = Number(this.offset[row[span]]);
      this.y0[span] = (base + Number(lower[span])) / unit.bytes;
      this.y1[span] = (base + Number(upper[span])) / unit.bytes;
    }
    this.waste = data.waste && this._holes(data.waste);
    this.supports = data.supports && this._supports(data.supports);
  }

  _holes({ start, end, lower, upper, share }) {
    const { origin, unit } = this.memory;
    return {
      share,
      x0: floats(unpack(start), origin),
      x1: floats(unpack(end), origin),
      y0: floats(unpack(lower), 0n, unit.bytes),
      y1: floats(unpack(upper), 0n, unit.bytes),
    };
  }

  /** For every section of the load the span that reaches highest in it, or -1. */
  get skyline() {
    return (this._skyline ??= findSkyline(this, this.memory.loadTime));
  }

  /** The section in which the plan reaches its peak, -1 without one; of several the fullest. */
  get peakSection() {
    return (this._peakSection ??= this._findPeak());
  }

  _findPeak() {
    const { loadTime } = this.memory;
    const all = { x0: loadTime[0], perX: 1 / (loadTime.at(-1) - loadTime[0]), columns: 1 };
    return this.tallest(all).section[0];
  }

  /** For every column of an area the tallest moment in it; see `tallestMoments`. */
  tallest(area) {
    const { loadTime, loadHeight } = this.memory;
    return tallestMoments(this.skyline, this, loadTime, loadHeight, area);
  }

  /** Whether a place on the time axis is in the section of the peak. */
  isPeak(x) {
    const { loadTime: time } = this.memory;
    const at = this.peakSection;
    return x !== null && at >= 0 && time[at] <= x && x < time[at + 1];
  }

  /** The row that reaches highest at the peak. */
  get peakRow() {
    return this.memory.row[this.skyline[this.peakSection]];
  }

  /** Where the peak begins on the time axis. */
  get peakTime() {
    return this.memory.loadTime[this.peakSection];
  }

  _supports({ grounds, ...columns }) {
    const names = Object.keys(columns);
    return Object.fromEntries([
      ["grounds", grounds],
      ...names.map((name) => [name, unpack(columns[name])]),
    ]);
  }

  /** The rows that a buffer sits on. */
  below(row) {
    const { below_begin, below_row } = this.supports;
    return below_row.subarray(below_begin[row], below_begin[row + 1]);
  }

  /** The rows that sit on a buffer. */
  above(row) {
    const { above_begin, above_row } = this.supports;
    return above_row.subarray(above_begin[row], above_begin[row + 1]);
  }

  /** Why a buffer is as high as it is: the rows below it down to the ground, and what that is. */
  chain(row) {
    const { next, ground, grounds } = this.supports;
    const rows = [];
    for (let at = row; next[at] !== -1; at = next[at]) rows.push(next[at]);
    const last = rows.length ? rows[rows.length - 1] : row;
    return { rows, ground: grounds[ground[last]] };
  }

  /** The address after a buffer, exactly. */
  endOf(row) {
    return BigInt(this.offset[row]) + BigInt(this.memory.size[row]);
  }

  /** The span at a place, or the nearest one within a reach (of a thin box); -1 if there is none.
   *
   *  It looks at all of them: a tenth of a millisecond for 60,000, less than it takes to draw.
   */
  find(x, y, reachX, reachY) {
    const { x0, x1, y0, y1 } = this;
    let nearest = -1;
    let least = 1;
    for (let span = 0; span < x0.length; span++) {
      const dx = Math.max(x0[span] - x, x - x1[span], 0) / reachX;
      if (dx >= least) continue;
      const dy = Math.max(y0[span] - y, y - y1[span], 0) / reachY;
      const distance = Math.max(dx, dy);
      if (distance < least) {
        least = distance;
        nearest = span;
        if (distance === 0 && x < x1[span] && y < y1[span]) break;
      }
    }
    return nearest;
  }
}
