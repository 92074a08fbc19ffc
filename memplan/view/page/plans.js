// The figures of a plan: what is in sight at the current zoom goes into Bokeh's sources.
//
// Boxes of at least two pixels each way are Bokeh's quads. Thinner ones go into a raster
// (`raster.js`), so that the screen bounds the work, not the plan; where there would still be too
// many quads to pan, so do boxes thinner than 4, 8, ... pixels. Both reach a little beyond the
// frame, so that a small pan has something to show before the next drawing.
//
// A mean of colours would make a peak of one short moment as good as white. So each column of the
// raster shows the tallest section of its time (`skyline.js`) in full colour.

const MARGIN = 0.25; // of the frame, on every side
const CELLS = 2e6; // of a raster; with more, they become larger than pixels
const RIGHT = 14; // pixels from a frame to the end of its figure, as `figures.py` has it

class PlanFigure {
  constructor(document, memory, plan, at) {
    this.memory = memory;
    this.plan = plan;
    this.at = at;
    this.space = document.get_model_by_name(`memory-${at}`);
    this.strip = document.get_model_by_name(`load-${at}`);
    this.model = (name) => document.get_model_by_name(`${name}-${at}`);
    this.label = this._makeLabel();
    this.Pixels = this.model("thin").get_column("image")[0].constructor;
    this.lines = ["memory", "load"].flatMap((figure) =>
      ["capacity", "bound", "moment"].map((name) => ({
        name,
        model: document.get_model_by_name(`${name}-${figure}-${at}`),
      })),
    );
  }

  /** It is no annotation of Bokeh, whose boxes leave a path that the frame's outline draws again. */
  _makeLabel() {
    const { plan, memory } = this;
    const label = make("div", { class: "peak-label", "aria-hidden": "true", hidden: "" });
    if (plan.peakSection >= 0) {
      const when = WHOLE.format(memory.time(plan.peakTime));
      label.textContent = `peak ${human(plan.peak)} at time ${when}`;
    }
    find(`memory-${this.at}`).append(label);
    return label;
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
    // Whole pixels, so that cells are pixels.
    const [beside, above] = [Math.round(width * MARGIN), Math.round(height * MARGIN)];
    const x = ((time.end - time.start) / width) * beside;
    const y = ((address.end - address.start) / height) * above;
    const [wide, high] = [width + 2 * beside, height + 2 * above];
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
    const tallest = this.plan.tallest(area);
    const boxes = split(this.plan, area, raster, (span) => look.fills[row[span]], tallest);
    this.model("thin").data = this._pixels(raster, area);
    this._fill("waste", corners(holes || this.plan, open, area));
    this._fill("boxes", {
      ...corners(this.plan, boxes, area),
      fill: this._colours(boxes.map((span) => look.fills[row[span]])),
      edge: Float32Array.from(boxes, (span) => this._edge(span, area)),
    });
    this.model("names").data = this._names(boxes, look.fills);
    this._drawLoad(area);
    this._drawMarks(area);
    this._drawPeak();
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

  _names(boxes, colours) {
    const { x_range: time, y_range: address } = this.space;
    const view = { x0: time.start, x1: time.end, y0: address.start, y1: address.end };
    const found = placeNames(this.memory, this.plan, boxes, colours, view, this.pixels);
    const columns = ["x", "y", "text", "ink"];
    return Object.fromEntries(columns.map((name) => [name, found.map((each) => each[name])]));
  }

  _drawLoad({ x0, x1 }) {
    const columns = Math.ceil(this.pixels.width * (1 + 2 * MARGIN));
    this.model("curve").data = sampleLoad(this.memory, x0, x1, columns);
  }

  /** Draw lines around buffers: pairs of a row, and how (`colour`, `width`). */
  mark(marks) {
    this.marks = marks;
    const area = this.area();
    if (area) this._drawMarks(area);
  }

  /** The lines lie inside of the boxes; around thin ones, which they would cover, and thinner. */
  _drawMarks(area) {
    const { x0, x1, y0, y1 } = this.plan;
    const data = { left: [], right: [], bottom: [], top: [], colour: [], width: [] };
    for (const [row, { colour, width: full }] of this.marks ?? []) {
      for (const span of this.memory.spansOf(row)) {
        const wide = (x1[span] - x0[span]) * area.perX;
        const tall = (y1[span] - y0[span]) * area.perY;
        const thin = Math.min(wide, tall) < 4 * full;
        const width = thin ? Math.min(full, 1.5) : full;
        const out = (thin ? width : -width) / 2;
        const [x, y] = [out / area.perX, out / area.perY];
        data.left.push(Math.max(x0[span] - x, area.x0));
        data.right.push(Math.min(x1[span] + x, area.x1));
        data.bottom.push(Math.max(y0[span] - y, area.y0));
        data.top.push(Math.min(y1[span] + y, area.y1));
        data.colour.push(colour);
        data.width.push(width);
      }
    }
    this._fill("marks", data);
  }

  /** Draw the lines of the peak; its label is at the side with more room. */
  _drawPeak() {
    const { plan, memory } = this;
    if (plan.peakSection < 0) return;
    const x = plan.peakTime;
    const bottom = Number(plan.peak) / memory.unit.bytes;
    const visible = bottom < this.space.y_range.end;
    this.model("peak-above").setv({ left: x, right: x, bottom, visible });
    this.model("peak-load").setv({ location: x, visible: true });
    this.placeLabel();
  }

  /** Move the label of the peak to its line, and hide it where the line is out of sight. */
  placeLabel() {
    const { plan, label } = this;
    const { start, end } = this.space.x_range;
    const x = plan.peakTime;
    label.hidden = plan.peakSection < 0 || x < start || x > end;
    if (label.hidden) return;
    const { width } = this.pixels;
    const fromRight = ((end - x) / (end - start)) * width;
    const right = fromRight < width / 2;
    label.style.right = right ? `${fromRight + RIGHT + 4}px` : "auto";
    label.style.left = right ? "auto" : `calc(100% - ${fromRight + RIGHT - 4}px)`;
  }

  /** Put the line of the moment somewhere; the peak has a line already. */
  setMoment(x) {
    this.setLine("moment", this.plan.isPeak(x) ? null : x);
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
    for (const figure of [this.space, this.strip]) paintFrame(figure, quiet, grid);
    const colours = { capacity: token("capacity"), bound: ink, moment: token("accent") };
    for (const name of ["peak-above", "peak-load"]) this.model(name).line_color = ink;
    for (const { name, model } of this.lines) model.line_color = colours[name];
    this.model("boxes-quads").glyph.line_color = back;
    this.model("waste-quads").glyph.fill_color = token("waste");
    this.model("area").glyph.fill_color = token("load");
    this.model("step").glyph.line_color = token("load");
  }
}
