// Colours: those of the page's theme, those of buffers, and the key to them.

const OTHERS = "#b0b0b0"; // as `memplan.view.classes` has it
const OCTAVES = 12; // below the largest size; boxes of smaller sizes are too thin to be seen
const STOPS = 12; // of the gradient in the key
const FAINT = 0x1e; // alpha of buffers that a search did not find

/** A colour of the style sheet, which has those of both themes. */
function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Colour the frame, the axes and the grid of a figure of Bokeh. */
function paintFrame(figure, quiet, grid) {
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

/** "#rrggbb" as 0xRRGGBBAA. */
function rgba(colour, alpha = 255) {
  return ((parseInt(colour.slice(1), 16) << 8) | alpha) >>> 0;
}

function isFaint(colour) {
  return (colour & 255) === FAINT;
}

/** The scale of amounts, without the end that is too close to the background. */
function scaleOf(memory, dark) {
  return dark ? memory.scale.slice(36) : memory.scale.slice(0, 236);
}

/** The colour of every row, as 0xRRGGBBAA. */
function fills(memory, by, dark, matches) {
  const colours = by === "size" ? bySize(memory, dark) : byClass(memory.classes[by]);
  if (matches) {
    for (let row = 0; row < colours.length; row++) {
      if (!matches[row]) colours[row] = ((colours[row] & ~255) | FAINT) >>> 0;
    }
  }
  return colours;
}

function byClass({ code, colour }) {
  const each = colour.map((one) => rgba(one));
  return Uint32Array.from(unpack(code), (number) => each[number]);
}

function bySize(memory, dark) {
  const scale = scaleOf(memory, dark).map((colour) => rgba(colour));
  const [low, high] = sizeLimits(memory);
  const steps = Math.max(Math.log2(high / low), 1e-9);
  return Uint32Array.from(memory.size, (size) => {
    const share = Math.log2(Math.max(Number(size), low) / low) / steps;
    return scale[Math.round(Math.min(share, 1) * (scale.length - 1))];
  });
}

/** The ends of the scale of sizes. */
function sizeLimits(memory) {
  const { bySize, size } = memory;
  const high = bySize.length ? Math.max(Number(size[bySize[0]]), 1) : 1;
  let smallest = high;
  for (const bytes of size) if (bytes > 0 && bytes < smallest) smallest = Number(bytes);
  return [Math.max(smallest, high / 2 ** OCTAVES), high];
}

/** Draw the key: what the colours of buffers mean. */
function drawLegend(element, memory, by, dark) {
  element.replaceChildren();
  if (by === "size") {
    const [low, high] = sizeLimits(memory);
    if (low === high) return; // one colour needs no key
    const bar = element.appendChild(document.createElement("span"));
    bar.className = "scale";
    const scale = scaleOf(memory, dark);
    const stops = Array.from({ length: STOPS }, (_, at) =>
      scale[Math.round((at / (STOPS - 1)) * (scale.length - 1))],
    );
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    bar.before(human(Math.round(low)));
    bar.after(human(Math.round(high)));
    return;
  }
  const { key, others } = memory.classes[by];
  const rows = others ? [...key, [plural(others, "other"), OTHERS]] : key;
  for (const [name, colour] of rows) {
    const item = element.appendChild(document.createElement("span"));
    item.className = "class";
    const swatch = item.appendChild(document.createElement("i"));
    swatch.style.background = colour;
    item.append(name);
  }
}
