// Names inside of boxes: as much of a name as there is room for, in ink that can be read.

const NAME_FONT = "11px system-ui, sans-serif"; // as `figures.py` has it
const LEAST_LETTERS = 4; // "…w_7"; one less where the end begins with a separator, as "…_7"

let pen = null; // made when the first name needs it

/** The width of a text in the figures, in pixels. */
function widthOf(text) {
  if (!pen) {
    pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    pen.font = NAME_FONT;
  }
  return pen.measureText(text).width;
}

/** A name, or its end after "…", in so many pixels; empty if there is room for too little of it. */
function fitted(name, room) {
  const width = widthOf(name);
  if (width <= room) return plain(name);
  const letters = [...name];
  for (let count = Math.floor((letters.length * room) / width); count >= LEAST_LETTERS - 1; count--) {
    const end = `…${letters.slice(1 - count).join("")}`;
    if (count < LEAST_LETTERS && /^…[\p{L}\p{N}]/u.test(end)) continue;
    if (widthOf(end) <= room) return plain(end);
  }
  return "";
}

/** Text that Bokeh does not take for TeX, which it finds between $$ or \( and \). */
function plain(text) {
  return text.replace(/\s/g, " ").replace(/[$\\]/g, "$&\u200b"); // a space without a width
}

/** Black or white, whichever has more contrast on a colour, as WCAG measures it. */
function inkOn(colour) {
  const linear = [24, 16, 8].map((shift) => {
    const part = ((colour >>> shift) & 255) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return luminance > 0.179 ? "#000000" : "#ffffff";
}
