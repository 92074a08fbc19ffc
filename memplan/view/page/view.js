// The view: the ranges that all figures share, and when the figures are drawn again.

const TALLEST = 3; // times the lowest plan is in sight; the rest of higher plans can be panned to
const HEADROOM = 1.07; // of the axis of addresses: the label of the peak is above the peak
const REST = 90; // milliseconds without a change before a view that is still covered is drawn

class View {
  constructor(figures, memory, load, draw) {
    this.figures = figures;
    this.memory = memory;
    this.draw = draw;
    this.load = load;
    const { space } = figures[0];
    this.time = space.x_range;
    this.address = space.y_range;
    for (const range of [this.time, this.address]) range.change.connect(() => this.changed());
    for (const { space: each } of figures) {
      each.properties.inner_width.change.connect(() => this.changed());
      each.properties.inner_height.change.connect(() => this.changed());
    }
  }

  get ranges() {
    return {
      x0: this.time.start,
      x1: this.time.end,
      y0: this.address.start,
      y1: this.address.end,
    };
  }

  /** Look somewhere else, as far as there is anything. */
  set(x0, x1, y0, y1) {
    this.time.setv(within(x0, x1, this.time));
    this.address.setv(within(y0, y1, this.address));
  }

  /** See the plans that are shown; what is far above the lowest of them would flatten it. */
  home(shown) {
    const { bound, capacity, unit } = this.memory;
    const limit = Number(capacity ?? 0);
    const reach = (used) => Math.max(used, limit <= 2 * used ? limit : 0, 1) / unit.bytes;
    const peaks = shown.map(({ peak }) => Number(peak));
    const near = peaks.filter((peak) => peak <= TALLEST * Math.min(...peaks));
    this.load.setv({ start: 0, end: reach(Number(bound)) * 1.12 });
    this.set(...this.time.bounds, 0, reach(Math.max(Number(bound), ...near)) * HEADROOM);
  }

  /** Move by shares of what is seen. */
  pan(right, up) {
    const { x0, x1, y0, y1 } = this.ranges;
    const [x, y] = [(x1 - x0) * right, (y1 - y0) * up];
    this.set(x0 + x, x1 + x, y0 + y, y1 + y);
  }

  /** See a part of what is seen, or more: `by` is the new width of the old one. */
  zoom(by) {
    const { x0, x1, y0, y1 } = this.ranges;
    const [x, y] = [((x1 - x0) * (1 - by)) / 2, ((y1 - y0) * (1 - by)) / 2];
    this.set(x0 + x, x1 - x, y0 + y, y1 - y);
  }

  /** Bring a buffer into sight, with what is around it, unless it can be seen as it is. */
  reveal(plan, row) {
    const spans = this.memory.spansOf(row);
    if (!spans.length) return; // it holds nothing
    const box = {
      x0: Math.min(...spans.map((span) => plan.x0[span])),
      x1: Math.max(...spans.map((span) => plan.x1[span])),
      y0: Math.min(...spans.map((span) => plan.y0[span])),
      y1: Math.max(...spans.map((span) => plan.y1[span])),
    };
    const seen = this.ranges;
    const { width, height } = this.figures[0].pixels;
    const [x0, x1] = around(box.x0, box.x1, seen.x0, seen.x1, width);
    const [y0, y1] = around(box.y0, box.y1, seen.y0, seen.y1, height);
    this.set(x0, x1, y0, y1);
  }

  /** Draw soon: at once if something is missing, or else when nothing has changed for a while. */
  changed() {
    for (const figure of this.figures) figure.placeLabel();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.redraw(), this._covered() ? REST : 0);
  }

  redraw() {
    clearTimeout(this.timer);
    this.drawn = this.figures.find((figure) => figure.pixels.width > 0)?.area();
    this.draw();
  }

  _covered() {
    const { x0, x1, y0, y1 } = this.ranges;
    const { drawn } = this;
    return drawn && drawn.x0 <= x0 && x1 <= drawn.x1 && drawn.y0 <= y0 && y1 <= drawn.y1;
  }
}

/** A range moved and cut so that it lies inside of what there is. */
function within(start, end, { bounds: [first, last] }) {
  const length = Math.min(end - start, last - first);
  const begin = Math.min(Math.max(start, first), last - length);
  return { start: begin, end: begin + length };
}

/** Where to look along one axis so that [low, high) is in sight and is not a line. */
function around(low, high, start, end, pixels) {
  const large = ((high - low) / (end - start)) * pixels >= 8;
  if (large && high > start && low < end) return [start, end];
  const length = large ? end - start : (high - low) * 16;
  const middle = (low + high) / 2;
  return [middle - length / 2, middle + length / 2];
}
