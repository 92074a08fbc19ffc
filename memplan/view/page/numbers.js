// Numbers: out of the page's data, and as people read them.

const ARRAYS = { int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array };
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const WHOLE = new Intl.NumberFormat("en-US");

/** A column as Python packed it: BigInt where 32 bits are not enough, else numbers. */
function unpack(column) {
  if (ArrayBuffer.isView(column)) return column; // made in the browser
  return new ARRAYS[column.type](bytesOf(column.data).buffer);
}

function bytesOf(data) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(data); // of newer browsers, and faster
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** Texts that are numbered in the data: a function from row to text. */
function decode({ code, text }) {
  const codes = unpack(code);
  return (row) => text[codes[row]];
}

/** A column to draw with: `(value - origin) / unit`, subtracted before digits are lost. */
function floats(column, origin = 0n, unit = 1) {
  const result = new Float64Array(column.length);
  const big = column instanceof BigInt64Array;
  const zero = big ? origin : Number(origin);
  for (let at = 0; at < column.length; at++) {
    result[at] = Number(column[at] - zero) / unit;
  }
  return result;
}

/** Bytes in the largest unit that fits; cut, not rounded, as `memplan.view.units.human` does. */
function human(count) {
  const value = BigInt(count);
  let unit = 0;
  while (unit < UNITS.length - 1 && value >> BigInt(10 * (unit + 1))) unit++;
  if (unit === 0) return value === 1n ? "1 byte" : `${value} bytes`;
  const shift = BigInt(10 * unit);
  const rest = value & ((1n << shift) - 1n);
  const part = rest ? "." + String((rest * 100n) >> shift).padStart(2, "0") : "";
  return `${value >> shift}${part} ${UNITS[unit]}`;
}

/** Bytes to the last one, and in a unit that can be grasped. */
function exact(count) {
  return count < 1024 ? human(count) : `${WHOLE.format(count)} bytes (${human(count)})`;
}

function percent(part, whole) {
  // The blank does not break, so that no line begins with "%".
  return whole ? `${((100 * Number(part)) / Number(whole)).toFixed(1)}\u00a0%` : "-";
}

function plural(count, noun) {
  return `${WHOLE.format(count)} ${noun}${count === 1 ? "" : noun.endsWith("ch") ? "es" : "s"}`;
}
