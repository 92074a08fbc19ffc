// Boxes thinner than a pixel, as pixels: every pixel gets the mean colour of what covers it, but
// for those pixels that are to keep one colour.
//
// A box adds to a grid only where its cover changes, and one running sum at the end turns that
// into colours. So it takes the time of boxes plus pixels, not of boxes times pixels:
//
//     cover along a row        0   .4   1   1   1   .7   0
//     what is added to it      0  +.4 +.6   0   0  -.3 -.7
//
// Wide boxes are summed along rows, tall ones along columns, so that each touches few cells.

class Raster {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.wide = null; // made when the first box needs it: most views have only one sort of box
    this.tall = null;
    this.kept = []; // cells, each followed by its colour
  }

  /** Give a cell one colour, whatever else covers it. */
  keep(x, y, colour) {
    if (y >= 0 && y < this.height) this.kept.push(y * this.width + x, colour);
  }

  /** Add a box in cells, of a colour 0xRRGGBBAA, which covers the columns with `isFull` wholly. */
  add(x0, x1, y0, y1, colour, isFull = null) {
    const { width, height } = this;
    x0 = Math.max(x0, 0);
    y0 = Math.max(y0, 0);
    x1 = Math.min(x1, width);
    y1 = Math.min(y1, height);
    if (!(x0 < x1 && y0 < y1)) return;
    // A box that ends at the border has a change up to two cells after the last one.
    if (!isFull && x1 - x0 >= y1 - y0) {
      this.wide ??= new Float32Array(4 * (width + 2) * height);
      addChanges(this.wide, 4, 4 * (width + 2), x0, x1, y0, y1, colour);
    } else {
      this.tall ??= new Float32Array(4 * width * (height + 2));
      addChanges(this.tall, 4 * width, 4, y0, y1, x0, x1, colour, isFull);
    }
  }

  get isEmpty() {
    return this.wide === null && this.tall === null && !this.kept.length;
  }

  /** Red, green, blue and alpha of every cell, in this order in memory, the lowest row first. */
  pixels() {
    const { width, height, wide, tall } = this;
    const result = new Uint32Array(width * height);
    const above = new Float32Array(4 * width); // the sum of every column, up to this row
    for (let y = 0, at = 0, from = 0; y < height; y++) {
      let [red, green, blue, cover] = [0, 0, 0, 0];
      if (wide) from = 4 * y * (width + 2);
      for (let x = 0; x < width; x++, at++) {
        if (wide) {
          red += wide[from];
          green += wide[from + 1];
          blue += wide[from + 2];
          cover += wide[from + 3];
          from += 4;
        }
        let r = red;
        let g = green;
        let b = blue;
        let all = cover;
        if (tall) {
          const column = 4 * x;
          r += above[column] += tall[4 * at];
          g += above[column + 1] += tall[4 * at + 1];
          b += above[column + 2] += tall[4 * at + 2];
          all += above[column + 3] += tall[4 * at + 3];
        }
        if (all < 1e-3) continue; // what rounding left behind a box
        result[at] = packed(r / all, g / all, b / all, Math.min(all, 1) * 255);
      }
    }
    const { kept } = this;
    for (let at = 0; at < kept.length; at += 2) {
      const colour = kept[at + 1];
      const [red, green, blue] = [24, 16, 8].map((shift) => (colour >>> shift) & 255);
      result[kept[at]] = packed(red, green, blue, colour & 255);
    }
    return result;
  }
}

/** A pixel as little-endian machines keep it; rounding may have left a part outside of a byte. */
function packed(red, green, blue, alpha) {
  return ((alpha << 24) | (byte(blue) << 16) | (byte(green) << 8) | byte(red)) >>> 0;
}

function byte(value) {
  return value < 0 ? 0 : value > 255 ? 255 : value;
}

/** Add where the cover of a box changes, line by line.
 *
 *  `a` runs along a line, where cells are `step` apart, and `b` counts lines, `next` apart.
 */
function addChanges(grid, step, next, a0, a1, b0, b1, colour, isFull = null) {
  const alpha = (colour & 255) / 255;
  const first = Math.floor(a0);
  const last = Math.floor(a1);
  const [enters, leaves] = [a0 - first, a1 - last];
  for (let line = Math.floor(b0); line < b1; line++) {
    const part = isFull?.(line) ? 1 : Math.min(b1, line + 1) - Math.max(b0, line);
    const cover = alpha * part;
    const [begin, end] = [line * next + first * step, line * next + last * step];
    addChange(grid, begin, cover * (1 - enters), colour);
    addChange(grid, begin + step, cover * enters, colour);
    addChange(grid, end, -cover * (1 - leaves), colour);
    addChange(grid, end + step, -cover * leaves, colour);
  }
}

function addChange(grid, at, by, colour) {
  grid[at] += by * (colour >>> 24);
  grid[at + 1] += by * ((colour >>> 16) & 255);
  grid[at + 2] += by * ((colour >>> 8) & 255);
  grid[at + 3] += by;
}
