// The figures of a plan: what of it can be seen at the current zoom goes into Bokeh's sources.
//
// Boxes of at least a pixel each way are Bokeh's quads. What is thinner goes into a raster
// (`raster.js`), so that the work is bounded by the screen and not by the plan; where there would
// still be too many quads to pan, also what is thinner than 2, 4, 8, ... pixels. Both reach a
// little beyond the frame, so that a small pan has something to show before the next drawing.

const MARGIN = 0.25; // of the frame, on every side
const CELLS = 2e6; // of a raster; with more, they become larger than pixels
const QUADS = 4000; // at once: as many as can be drawn in a frame without a graphics card
const NAMES = 250; // written into boxes at once
const LETTER = 6.3; // pixels, about

class PlanFigure {
  constructor(document, memory, plan, at) {
    this.memory = memory;
    this.plan = plan;
    this.at = at;
    this.space = document.get_model_by_name(`memory-${at}`);
    this.strip = document.get_model_by_name(`load-${at}`);
    this.model = (name) => document.get_model_by_name(`${name}-${at}`);
    this.Pixels = this.model("thin").get_column("image")[0].constructor;
    this.lines = ["memory", "load"].flatMap((figure) =>
      ["capacity", "bound", "moment"].map((name) => ({
        name,
        model: document.get_model_by_name(`${name}-${figure}-${at}`),
      })),
    );
  }

  /** Pixels of the frame; 0 while it is hidden. */
  get pixels() {
    return { width: this.space.inner_width, height: this.space.inner_height };
  }

  /** What is drawn: the frame and its margin, and the cells of a raster on it. */
  area() {
    const { x_range: time, y_range: address } = this.space;
    const { width, height } = this.pixels;
    if (!(width > 0 && height > 0)) return null;
    const [x, y] = [(time.end - time.start) * MARGIN, (address.end - address.start) * MARGIN];
    const wide = width * (1 + 2 * MARGIN);
    const high = height * (1 + 2 * MARGIN);
    const scale = Math.min(1, Math.sqrt(CELLS / (wide * high)));
    const area = {
      x0: time.start - x,
      x1: time.end + x,
      y0: address.start - y,
      y1: address.end + y,
      columns: Math.ceil(wide * scale),
      rows: Math.ceil(high * scale),
    };
    area.perX = area.columns / (area.x1 - area.x0);
    area.perY = area.rows / (area.y1 - area.y0);
    return area;
  }

  /** Draw what can be seen. `look` has the colours of rows, and that of waste or null. */
  draw(look) {
    const area = this.area();
    if (!area) return;
    const raster = new Raster(area.columns, area.rows);
    const { row } = this.memory;
    const holes = look.waste && this.plan.waste;
    const open = holes ? split(holes, area, raster, () => rgba(look.waste, 56)) : [];
    const boxes = split(this.plan, area, raster, (span) => look.fills[row[span]]);
    this.model("thin").data = this._pixels(raster, area);
    this._fill("waste", corners(holes || this.plan, open, area));
    this._fill("boxes", {
      ...corners(this.plan, boxes, area),
      fill: this._colours(boxes.map((span) => look.fills[row[span]])),
      edge: Float32Array.from(boxes, (span) => this._edge(span, area)),
    });
    this.model("names").data = this._names(boxes, look.fills);
    this._drawLoad(area);
  }

  /** Give quads their corners. Bokeh copies a whole canvas for all that are visible, even for none. */
  _fill(name, data) {
    this.model(name).data = data;
    this.model(`${name}-quads`).visible = data.left.length > 0;
  }

  _colours(colours) {
    return new this.Pixels(Uint32Array.from(colours).buffer, [colours.length]);
  }

  _pixels(raster, { x0, x1, y0, y1, columns, rows }) {
    if (raster.isEmpty) return { image: [], x: [], y: [], dw: [], dh: [] };
    const image = new this.Pixels(raster.pixels().buffer, [rows, columns]);
    return { image: [image], x: [x0], y: [y0], dw: [x1 - x0], dh: [y1 - y0] };
  }

  /** The alpha of an edge, which would cover a small box. */
  _edge(span, { perX, perY }) {
    const { x0, x1, y0, y1 } = this.plan;
    const narrow = Math.min((x1[span] - x0[span]) * perX, (y1[span] - y0[span]) * perY);
    return Math.min(Math.max((narrow - 2) / 4, 0), 1);
  }

  /** Names for the largest boxes, in the middle of what can be seen of them. */
  _names(boxes, colours) {
    const { x_range: time, y_range: address } = this.space;
    const { width, height } = this.pixels;
    const perX = width / (time.end - time.start);
    const perY = height / (address.end - address.start);
    const { x0, x1, y0, y1 } = this.plan;
    const roomy = [];
    for (const span of boxes) {
      const [left, right] = [Math.max(x0[span], time.start), Math.min(x1[span], time.end)];
      const [low, high] = [Math.max(y0[span], address.start), Math.min(y1[span], address.end)];
      const [wide, tall] = [(right - left) * perX, (high - low) * perY];
      const row = this.memory.row[span];
      if (wide < 30 || tall < 13 || isFaint(colours[row])) continue;
      const text = shortened(this.memory.name[row], Math.floor((wide - 8) / LETTER));
      if (!text) continue;
      const place = { x: (left + right) / 2, y: (low + high) / 2 };
      roomy.push({ ...place, text, ink: inkOn(colours[row]), size: wide * tall });
    }
    roomy.sort((a, b) => b.size - a.size).splice(NAMES);
    const columns = ["x", "y", "text", "ink"];
    return Object.fromEntries(columns.map((name) => [name, roomy.map((each) => each[name])]));
  }

  /** The load: every section, or the greatest load of every pixel where there are more. */
  _drawLoad({ x0, x1 }) {
    const { loadTime: time, loadHeight: height } = this.memory;
    const sections = height.length;
    const first = Math.max(upperBound(time, x0) - 1, 0);
    const last = Math.min(upperBound(time, x1), sections);
    const columns = Math.ceil(this.pixels.width * (1 + 2 * MARGIN));
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
    this.model("curve").data = { x, y };
  }

  /** Draw lines around buffers: pairs of a row, and how (`colour`, `width`). */
  mark(marks) {
    const { x0, x1, y0, y1 } = this.plan;
    const data = { left: [], right: [], bottom: [], top: [], colour: [], width: [] };
    for (const [row, { colour, width }] of marks) {
      for (const span of this.memory.spansOf(row)) {
        data.left.push(x0[span]);
        data.right.push(x1[span]);
        data.bottom.push(y0[span]);
        data.top.push(y1[span]);
        data.colour.push(colour);
        data.width.push(width);
      }
    }
    this._fill("marks", data);
  }

  /** Put a line somewhere, in units of its axis; nowhere for null. */
  setLine(wanted, location) {
    for (const { name, model } of this.lines) {
      if (name === wanted) model.setv({ location: location ?? 0, visible: location !== null });
    }
  }

  /** Take the colours of the style sheet, which follow the theme. */
  paint() {
    const [ink, quiet, grid, back] = ["ink", "quiet", "grid", "panel"].map(token);
    for (const figure of [this.space, this.strip]) {
      figure.outline_line_color = grid;
      for (const axis of [...figure.below, ...figure.left]) {
        axis.setv({
          axis_label_text_color: quiet,
          major_label_text_color: quiet,
          axis_line_color: grid,
          major_tick_line_color: grid,
        });
      }
      for (const each of figure.center) {
        if (each.type === "Grid") each.grid_line_color = grid;
      }
    }
    const colours = { capacity: token("capacity"), bound: ink, moment: token("accent") };
    for (const { name, model } of this.lines) model.line_color = colours[name];
    this.model("boxes-quads").glyph.line_color = back;
    this.model("waste-quads").glyph.fill_color = token("waste");
    this.model("area").glyph.fill_color = token("load");
    this.model("step").glyph.line_color = token("load");
  }
}

/** Put thin boxes into the raster; return the numbers of all others. */
function split({ x0, x1, y0, y1 }, area, raster, colourOf) {
  const seen = [];
  for (let at = 0; at < x0.length; at++) {
    if (x1[at] <= area.x0 || x0[at] >= area.x1) continue;
    if (y1[at] <= area.y0 || y0[at] >= area.y1) continue;
    seen.push(at);
  }
  const thin = (at) =>
    Math.min((x1[at] - x0[at]) * area.perX, (y1[at] - y0[at]) * area.perY);
  const least = leastSide(seen, thin);
  return seen.filter((at) => {
    if (thin(at) >= least) return true;
    const left = (x0[at] - area.x0) * area.perX;
    const right = (x1[at] - area.x0) * area.perX;
    const lower = (y0[at] - area.y0) * area.perY;
    const upper = (y1[at] - area.y0) * area.perY;
    raster.add(left, right, lower, upper, colourOf(at));
    return false;
  });
}

/** The shorter side, in cells, from which on boxes are few enough to be quads: 1, 2, 4, ... */
function leastSide(boxes, thin) {
  const count = new Uint32Array(33); // by the octave of the shorter side
  for (const at of boxes) count[Math.min(Math.max(Math.floor(Math.log2(thin(at))), -1), 31) + 1]++;
  let octave = 32;
  for (let quads = count[octave]; octave > 1; octave--) {
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

/** As much of a name as there is room for; empty if that says nothing. */
function shortened(name, letters) {
  if (name.length > letters && letters < 4) return "";
  const text = name.length <= letters ? name : `${name.slice(0, letters - 1)}…`;
  // Bokeh takes text between $$ or \( and \) for TeX; a space without a width keeps them apart.
  return text.replace(/\s/g, " ").replace(/[$\\]/g, "$&\u200b");
}

/** Black or white, whichever reads better on a colour. */
function inkOn(colour) {
  const [red, green, blue] = [24, 16, 8].map((shift) => (colour >>> shift) & 255);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#111111" : "#ffffff";
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
