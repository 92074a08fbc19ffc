// Writes offsets into a TFLite file as `memplan plan` does: the same bytes for the same plan.
//
//     [new root │ its lists of buffers and of metadata │ the offsets][the whole old file]
//         └──────────────┴───── refer to ────────────────────────────────►

const GRAIN = 64; // bytes; files align their weights to at most this
const [BUFFERS, METADATA] = [4, 6]; // slots of the outermost table

/** By tensor of the file its offset in the plan, or -1 if TFLM places it. */
function findOffsets(model, graph, rows, offsets) {
  const found = new Array(model.count).fill(-1);
  const used = new Set([...graph.inputs, ...graph.outputs]);
  for (const { inputs, outputs, blocks } of walk(graph.operators)) {
    const ends = blocks.flatMap((block) => [...block.inputs, ...block.outputs]);
    for (const at of [...inputs, ...outputs, ...ends]) used.add(at);
  }
  graph.tensors.forEach(({ kind, bytes }, at) => {
    // TFLM would give what nothing touches memory of its own; at 0 it shares what others have.
    if (at < found.length && kind === "intermediate" && bytes && !used.has(at)) found[at] = 0;
  });
  rows.forEach((row, number) => {
    for (const [tensor, inside] of row.members) {
      if (tensor < found.length) found[tensor] = offsets[number] + inside;
    }
  });
  const peak = rows.reduce((most, row, at) => Math.max(most, offsets[at] + row.size), 0);
  if (peak >= 2 ** 31) refuse(`the plan has ${peak} bytes; TFLM counts up to 2^31 - 1`);
  if (found.some((offset, at) => offset === 0 && !used.has(at) && graph.tensors[at].bytes > peak)) {
    refuse(
      "the file has a tensor that no operator touches and that is larger than the plan: use memplan plan",
    );
  }
  return found;
}

/** The file with an offline plan. */
function writeOffsets(bytes, model, offsets) {
  const root = rootOf(bytes);
  if (root.tables(BUFFERS).some((buffer) => buffer.number(1, "BigUint64") > 1)) {
    refuse(
      "the file has weights behind the FlatBuffer, as models over 2 GB do: no plan can be written into it",
    );
  }
  const plan = Int32Array.of(1, model.subgraphs.length, offsets.length, ...offsets);
  const place = findOldPlan(root, model, 4 * plan.length);
  if (place === null) return writeInFront(bytes, root, plan);
  const result = bytes.slice();
  const view = new DataView(result.buffer);
  plan.forEach((word, at) => view.setInt32(place + 4 * at, word, true));
  return result;
}

function planEntries(root) {
  return root.tables(METADATA).filter((entry) => entry.text(0) === OFFLINE_PLAN);
}

/** Where the numbers of the file's plan are, if it has this size and is not shared. */
function findOldPlan(root, model, size) {
  const entries = planEntries(root);
  if (entries.length !== 1) return null;
  const number = entries[0].number(1, "Uint32");
  const values = root.tables(BUFFERS).map((buffer) => buffer.vector(0, 1));
  const [first, count] = values[number] ?? [0, 0];
  const isValue = model.subgraphs.some(({ tensors }) =>
    tensors.some(({ buffer }) => buffer === number),
  );
  if (count !== size || isValue) return null;
  const shared = values.some(
    ([begin, length], at) => at !== number && begin < first + count && first < begin + length,
  );
  return shared ? null : first;
}

/** The bytes before the old file; links to that are set when the length of these is known. */
class Front {
  constructor() {
    this.data = [0, 0, 0, 0, 0x54, 0x46, 0x4c, 0x33]; // "TFL3"
    this.links = [];
  }

  /** Add bytes at a multiple of 4, or of 16 for what lies `before` bytes behind their begin. */
  put(raw, before = 0) {
    const grain = before ? 16 : 4;
    while ((this.data.length + before) % grain) this.data.push(0);
    const at = this.data.length;
    for (const byte of raw) this.data.push(byte);
    return at;
  }

  set32(at, value) {
    for (let byte = 0; byte < 4; byte++) this.data[at + byte] = (value >> (8 * byte)) & 255;
  }

  /** Add a table with empty fields of four bytes. */
  table(slots) {
    const entries = new Uint16Array(2 + Math.max(...slots) + 1);
    entries[0] = 2 * entries.length;
    entries[1] = 4 + 4 * slots.length;
    slots.forEach((slot, order) => (entries[2 + slot] = 4 + 4 * order));
    const layout = this.put(new Uint8Array(entries.buffer));
    const at = this.put(new Uint8Array(entries[1]));
    this.set32(at, at - layout);
    return { at, slot: (number) => at + entries[2 + number] };
  }

  /** Add a vector of tables of the old file, with room for one more; return the last entry too. */
  vector(entries) {
    const at = this.put(new Uint8Array(8 + 4 * entries.length));
    this.set32(at, entries.length + 1);
    entries.forEach((entry, order) => this.link(at + 4 + 4 * order, entry, true));
    return { at, last: at + 4 + 4 * entries.length };
  }

  link(at, target, isOld = false) {
    this.links.push([at, target, isOld]);
  }

  before(bytes) {
    while (this.data.length % GRAIN) this.data.push(0);
    const size = this.data.length;
    for (const [at, target, isOld] of this.links) this.set32(at, target + (isOld ? size : 0) - at);
    const result = new Uint8Array(size + bytes.length);
    result.set(this.data);
    result.set(bytes, size);
    return result;
  }
}

function writeInFront(bytes, old, plan) {
  const fields = old.fields();
  if (Math.max(0, ...fields.keys()) >= 10) {
    refuse(
      "its outermost table has a field that is newer than memplan: no plan can be written into it",
    );
  }
  const buffers = old.tables(BUFFERS).map(({ at }) => at);
  const obsolete = new Set(planEntries(old).map(({ at }) => at));
  const metadata = old
    .tables(METADATA)
    .map(({ at }) => at)
    .filter((at) => !obsolete.has(at));

  const front = new Front();
  const top = front.table(
    [...new Set([...fields.keys(), BUFFERS, METADATA])].sort((a, b) => a - b),
  );
  front.link(0, top.at);
  for (const [slot, at] of fields) {
    if (slot === 0)
      bytes.subarray(at, at + 4).forEach((byte, i) => (front.data[top.slot(0) + i] = byte));
    else if (slot !== BUFFERS && slot !== METADATA)
      front.link(top.slot(slot), old.target(slot), true);
  }
  const [bufferList, metadataList] = [front.vector(buffers), front.vector(metadata)];
  front.link(top.slot(BUFFERS), bufferList.at);
  front.link(top.slot(METADATA), metadataList.at);

  const buffer = front.table([0]);
  front.link(bufferList.last, buffer.at);
  const entry = front.table([0, 1]);
  front.link(metadataList.last, entry.at);
  const text = new TextEncoder().encode(`${OFFLINE_PLAN}\0`);
  front.link(entry.slot(0), front.put([text.length - 1, 0, 0, 0, ...text]));
  front.set32(entry.slot(1), buffers.length);
  const size = new Uint8Array(Int32Array.of(4 * plan.length).buffer);
  const numbers = front.put([...size, ...new Uint8Array(plan.buffer)], 4);
  front.link(buffer.slot(0), numbers);
  return front.before(bytes);
}
