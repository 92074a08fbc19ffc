// FlatBuffers, read with every offset checked, as `memplan.runtimes.tflm.read.flatbuffer` does.
//
//     table ──► -soffset ──► vtable: [its bytes][the table's bytes][offset of field 0][of field 1]...

class FlatFile {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.left = bytes.length; // how much may still be visited, as tables may share bytes
  }

  fail(sentence) {
    refuse(`the file is damaged or cut off: ${sentence}`);
  }

  require(what, at, size) {
    if (!(at >= 0 && at + size <= this.bytes.length)) {
      this.fail(`${what} at byte ${at} ends after its last byte (${this.bytes.length})`);
    }
  }

  visit(count) {
    this.left -= count;
    if (this.left < 0) this.fail("its tables refer to the same bytes too many times");
  }

  u32(what, at) {
    this.require(what, at, 4);
    return this.view.getUint32(at, true);
  }
}

class FlatTable {
  constructor(file, at) {
    file.visit(1);
    file.require("a table", at, 4);
    this.file = file;
    this.at = at;
    this.layout = at - file.view.getInt32(at, true);
    file.require("the layout of a table", this.layout, 4);
    this.layoutSize = file.view.getUint16(this.layout, true);
    this.size = file.view.getUint16(this.layout + 2, true);
    file.require("the layout of a table", this.layout, this.layoutSize);
    file.require("a table", at, this.size);
  }

  /** Where a field is, or null where the file leaves it at its default. */
  field(slot, size) {
    const entry = 4 + 2 * slot;
    if (entry + 2 > this.layoutSize) return null;
    const offset = this.file.view.getUint16(this.layout + entry, true);
    if (offset === 0) return null;
    if (offset < 4 || offset + size > this.size) {
      this.file.fail(`a field of the table at byte ${this.at} is outside of it`);
    }
    return this.at + offset;
  }

  /** The slots that are there, with their places. */
  fields() {
    const found = new Map();
    for (let slot = 0; 6 + 2 * slot <= this.layoutSize; slot++) {
      const at = this.field(slot, 1);
      if (at !== null) found.set(slot, at);
    }
    return found;
  }

  /** A scalar of a kind: "Int8", "Uint8", "Int32", "Uint32" or "BigUint64". */
  number(slot, kind) {
    const at = this.field(slot, parseInt(kind.replace(/\D/g, ""), 10) / 8);
    return at === null ? 0 : Number(this.file.view[`get${kind}`](at, true));
  }

  target(slot) {
    const at = this.field(slot, 4);
    return at === null ? null : at + this.file.u32("an offset", at);
  }

  table(slot) {
    const at = this.target(slot);
    return at === null ? null : new FlatTable(this.file, at);
  }

  /** Where the entries of a vector begin, and how many there are. */
  vector(slot, size) {
    const at = this.target(slot);
    if (at === null) return [0, 0];
    const count = this.file.u32("a vector", at);
    this.file.require(`a vector of ${count} entries`, at + 4, size * count);
    return [at + 4, count];
  }

  length(slot) {
    return this.vector(slot, 4)[1];
  }

  tables(slot) {
    const [at, count] = this.vector(slot, 4);
    const found = [];
    for (let entry = at; entry < at + 4 * count; entry += 4) {
      found.push(new FlatTable(this.file, entry + this.file.u32("a table", entry)));
    }
    return found;
  }

  /** A vector of whole numbers of 32 bits. */
  numbers(slot) {
    const [at, count] = this.vector(slot, 4);
    this.file.visit(count);
    return Array.from({ length: count }, (_, i) => this.file.view.getInt32(at + 4 * i, true));
  }

  raw(slot) {
    const [at, count] = this.vector(slot, 1);
    return this.file.bytes.subarray(at, at + count);
  }

  text(slot) {
    const raw = this.raw(slot);
    this.file.visit(Math.floor(raw.length / 4));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(raw);
  }
}

/** The outermost table of a file. */
function rootOf(bytes) {
  const file = new FlatFile(bytes);
  if (bytes.length < 8) refuse(`the file has ${bytes.length} bytes, too few for any model`);
  return new FlatTable(file, file.u32("the model", 0));
}
