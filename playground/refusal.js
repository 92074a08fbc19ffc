// What all readers share: sentences about files that cannot be read, and the limits of numbers.

const LARGEST = Number.MAX_SAFE_INTEGER; // where whole numbers of JavaScript end

/** Why a file cannot be read, as one sentence without the name of the file. */
class Refusal extends Error {}

function refuse(sentence) {
  throw new Refusal(sentence);
}

/** A text of a file in quotes, on one line and not too long. */
function quoted(text) {
  const all = JSON.stringify(text);
  return all.length <= 80 ? all : `${all.slice(0, 76)}..."`;
}

/** Some names, and how many others there are. */
function listed(names) {
  const more = names.length > 5 ? ` and ${names.length - 5} others` : "";
  return names.slice(0, 5).join(", ") + more;
}

/** A number of bytes that can be computed with. */
function checkBytes(bytes, what) {
  if (bytes > LARGEST) refuse(`${what} has more than 2^53 bytes; memplan plan counts up to 2^62`);
  return bytes;
}

function product(sizes) {
  return sizes.reduce((all, size) => all * size, 1);
}

function roundUp(size, step) {
  return Math.ceil(size / step) * step;
}

/** Names that nothing else has: a second "x" becomes "x (2)". */
class Names {
  constructor() {
    this.counts = new Map();
  }

  distinct(name) {
    let found = name;
    while (this.counts.has(found)) {
      const count = this.counts.get(name) + 1;
      this.counts.set(name, count);
      found = `${name} (${count})`;
    }
    this.counts.set(found, 1);
    return found;
  }
}
