// The two figures, addresses and load over time, on canvases: boxes, names and colours are those of
// the report page, and only the axes are our own.

const FRAME = { left: 78, right: 14, top: 8, bottom: 22 }; // pixels around what the axes enclose
const FONT = "11px system-ui, sans-serif";

/** Places on an axis that are easy to read, at most so many. */
function findTicks(start, end, most) {
  const least = (end - start) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least);
  const found = [];
  for (let at = Math.ceil(start / step); at * step <= end; at++) found.push(at * step || 0); // and not -0
  return found;
}

class Canvas {
  constructor(element, view) {
    this.element = element;
    this.view = view; // {x0, x1, y0, y1} in the units of the axes
    const scale = devicePixelRatio || 1;
    const { width, height } = element.parentElement.getBoundingClientRect();
    [element.width, element.height] = [Math.round(width * scale), Math.round(height * scale)];
    this.pen = element.getContext("2d");
    this.pen.setTransform(scale, 0, 0, scale, 0, 0);
    this.pen.font = FONT;
    this.scale = scale;
    this.width = Math.max(width - FRAME.left - FRAME.right, 1);
    this.height = Math.max(height - FRAME.top - FRAME.bottom, 1);
    this.perX = this.width / (view.x1 - view.x0);
    this.perY = this.height / (view.y1 - view.y0);
  }

  x(time) {
    return FRAME.left + (time - this.view.x0) * this.perX;
  }

  y(value) {
    return FRAME.top + this.height - (value - this.view.y0) * this.perY;
  }

  /** The place of the pointer, in the units of the axes. */
  placeOf({ offsetX, offsetY }) {
    return {
      x: this.view.x0 + (offsetX - FRAME.left) / this.perX,
      y: this.view.y0 + (FRAME.top + this.height - offsetY) / this.perY,
    };
  }

  /** Draw axes with their labels. */
  drawAxes(label, format) {
    const { pen, view } = this;
    const [quiet, grid] = ["quiet", "grid"].map(token);
    pen.lineWidth = 1;
    pen.strokeStyle = grid;
    pen.fillStyle = quiet;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of findTicks(view.y0, view.y1, this.height / 36)) {
      this.line(FRAME.left, this.y(value), FRAME.left + this.width, this.y(value));
      pen.fillText(format(value), FRAME.left - 6, this.y(value));
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const time of findTicks(view.x0, view.x1, this.width / 70)) {
      this.line(this.x(time), FRAME.top, this.x(time), FRAME.top + this.height);
      if (Number.isInteger(time))
        pen.fillText(WHOLE.format(time), this.x(time), FRAME.top + this.height + 6);
    }
    pen.strokeRect(FRAME.left, FRAME.top, this.width, this.height);
    pen.save();
    pen.translate(13, FRAME.top + this.height / 2);
    pen.rotate(-Math.PI / 2);
    pen.textBaseline = "middle";
    pen.fillText(label, 0, 0);
    pen.restore();
  }

  line(x0, y0, x1, y1, colour = null, dash = []) {
    const { pen } = this;
    pen.save();
    if (colour) {
      pen.strokeStyle = colour;
      pen.lineWidth = 1.5;
    }
    pen.setLineDash(dash);
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
    pen.restore();
  }

  across(value, colour, dash) {
    if (value > this.view.y1) return;
    this.line(FRAME.left, this.y(value), FRAME.left + this.width, this.y(value), colour, dash);
  }

  upright(time, colour, above = this.view.y0) {
    this.line(this.x(time), this.y(above), this.x(time), FRAME.top, colour);
  }

  /** What `split` needs to know: the cells of a raster, as many as pixels. */
  area() {
    const [columns, rows] = [this.width, this.height].map((side) => Math.ceil(side * this.scale));
    const { x0, x1, y0, y1 } = this.view;
    return { x0, x1, y0, y1, columns, rows, perX: columns / (x1 - x0), perY: rows / (y1 - y0) };
  }

  drawRaster(raster) {
    if (raster.isEmpty) return;
    const { width, height } = raster;
    const pixels = new Uint8ClampedArray(raster.pixels().buffer);
    const flipped = new ImageData(width, height); // a canvas has its first row at the top
    for (let row = 0; row < height; row++) {
      flipped.data.set(
        pixels.subarray(4 * width * row, 4 * width * (row + 1)),
        4 * width * (height - 1 - row),
      );
    }
    const image = document.createElement("canvas");
    [image.width, image.height] = [width, height];
    image.getContext("2d").putImageData(flipped, 0, 0);
    this.pen.drawImage(image, FRAME.left, FRAME.top, this.width, this.height);
  }
}

/** Draw the addresses of a plan over time; `chosen` is a moment or null. */
function drawMemory(canvas, memory, plan, fills, chosen) {
  const { pen } = canvas;
  const [ink, back, accent] = ["ink", "panel", "accent"].map(token);
  canvas.drawAxes(`address (${memory.unit.name})`, (value) => WHOLE.format(value));
  const area = canvas.area();
  const raster = new Raster(area.columns, area.rows);
  const boxes = split(plan, area, raster, (span) => fills[memory.row[span]], plan.tallest(area));
  canvas.drawRaster(raster);
  pen.strokeStyle = back;
  pen.lineWidth = 0.75;
  for (const span of boxes) {
    const [left, right] = [canvas.x(plan.x0[span]), canvas.x(plan.x1[span])];
    const [top, bottom] = [canvas.y(plan.y1[span]), canvas.y(plan.y0[span])];
    pen.fillStyle = `#${fills[memory.row[span]].toString(16).padStart(8, "0")}`;
    pen.fillRect(left, top, right - left, bottom - top);
    if (Math.min(right - left, bottom - top) > 3)
      pen.strokeRect(left, top, right - left, bottom - top);
  }
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (const { x, y, text, ink: colour } of placeNames(
    memory,
    plan,
    boxes,
    fills,
    canvas.view,
    canvas,
  )) {
    pen.fillStyle = colour;
    pen.fillText(text, canvas.x(x), canvas.y(y));
  }
  canvas.across(Number(memory.bound) / memory.unit.bytes, ink, [2, 3]);
  if (plan.peakSection >= 0)
    canvas.upright(plan.peakTime, ink, Number(plan.peak) / memory.unit.bytes);
  if (chosen !== null && !plan.isPeak(chosen)) canvas.upright(chosen, accent);
}

/** Draw the load over time. */
function drawLoads(canvas, memory, plan, chosen) {
  const { pen } = canvas;
  const [ink, load, accent] = ["ink", "load", "accent"].map(token);
  canvas.drawAxes(`load (${memory.unit.name})`, (value) => WHOLE.format(value));
  const { x, y } = sampleLoad(memory, canvas.view.x0, canvas.view.x1, Math.ceil(canvas.width));
  const curve = new Path2D();
  x.forEach((time, at) => {
    if (at === 0) curve.moveTo(canvas.x(time), canvas.y(0));
    else curve.lineTo(canvas.x(time), canvas.y(y[at - 1]));
    curve.lineTo(canvas.x(time), canvas.y(y[at]));
  });
  pen.strokeStyle = pen.fillStyle = load;
  pen.lineWidth = 1.5;
  pen.globalAlpha = 0.35;
  pen.fill(curve);
  pen.globalAlpha = 1;
  pen.stroke(curve);
  canvas.across(Number(memory.bound) / memory.unit.bytes, ink, [2, 3]);
  if (plan.peakSection >= 0) canvas.upright(plan.peakTime, ink);
  if (chosen !== null && !plan.isPeak(chosen)) canvas.upright(chosen, accent);
}
