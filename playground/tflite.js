// TFLite models as TensorFlow Lite Micro runs them, by the rules of `memplan.runtimes.tflm.read`.
//
// `TFLITE`, which the build writes, has the names of operators, the bytes of elements by type, and
// the operators that TFLM has kernels for.

const TFLM = "TensorFlow Lite Micro";
const ALIGNED = 16; // TFLM's MicroArenaBufferAlignment(); sizes are rounded up to it too
const DEEPEST = 64; // levels of sub-graphs in sub-graphs
const MOST_TIMES = 16; // average visits, as sub-graphs may be entered again
const OFFLINE_PLAN = "OfflineMemoryAllocation";
const ENTERED = { IF: [92, [0, 1]], WHILE: [93, [0, 1]], CALL_ONCE: [103, [0]] };

/** The sub-graphs, tensors and operators of a file. */
function parseTflite(bytes) {
  const root = rootOf(bytes);
  const buffers = root.tables(4);
  const data = buffers.map((buffer) => {
    const inside = buffer.raw(0).length;
    return inside || (buffer.number(1, "BigUint64") > 1 ? buffer.number(2, "BigUint64") : 0);
  });
  const types = root.tables(1).map((code) => {
    const number = Math.max(code.number(0, "Int8"), code.number(3, "Int32"));
    const name = TFLITE.operators[number];
    if (name === undefined) return `operator ${number}`;
    return name === "CUSTOM" ? code.text(1) || "CUSTOM" : name;
  });
  const count = root.length(2);
  const subgraphs = root.tables(2).map((table, at) => parseSubgraph(table, at, data, types, count));
  if (!subgraphs.length) refuse("the model contradicts itself: it has no sub-graph");
  let first = 0;
  for (const subgraph of subgraphs) {
    subgraph.first = first;
    first += subgraph.tensors.length;
  }
  const plans = root.tables(6).filter((entry) => entry.text(0) === OFFLINE_PLAN);
  for (const entry of plans) checkOldPlan(buffers[entry.number(1, "Uint32")], first);
  return { subgraphs, buffers, types, count: first, isPlanned: plans.length > 0 };
}

function checkOldPlan(buffer, count) {
  const words = buffer ? Math.floor(buffer.raw(0).length / 4) : 0;
  const [at] = buffer ? buffer.vector(0, 1) : [0];
  const offsets = words < 3 ? -1 : buffer.file.view.getInt32(at + 8, true);
  if (words < 3 || words < 3 + offsets) refuse(`its ${OFFLINE_PLAN} is cut off`);
  if (offsets !== count) refuse(`its ${OFFLINE_PLAN} has ${offsets} offsets for ${count} tensors`);
}

function parseSubgraph(table, number, data, types, count) {
  const tensors = table.tables(0).map((each) => parseTensor(each, data));
  const where = `sub-graph ${number}`;
  const indices = (place, found) => {
    for (const at of found) {
      if (at < -1 || at >= tensors.length) {
        refuse(`${place} refers to tensor ${at}, but there are ${tensors.length}`);
      }
    }
    return found;
  };
  const operators = table.tables(3).map((operator, at) => {
    const [code, place] = [operator.number(0, "Uint32"), `operator ${at} of ${where}`];
    if (code >= types.length) refuse(`${place} has a type that does not exist`);
    return {
      type: types[code],
      inputs: indices(place, operator.numbers(1)),
      outputs: indices(place, operator.numbers(2)),
      entered: readEntered(operator, types[code], place, count),
    };
  });
  const inputs = indices(where, table.numbers(1));
  return {
    name: table.text(4),
    tensors,
    operators,
    inputs,
    outputs: indices(where, table.numbers(2)),
  };
}

function parseTensor(table, data) {
  const [name, number, buffer] = [
    table.text(3),
    table.number(1, "Int8"),
    table.number(2, "Uint32"),
  ];
  if (buffer >= data.length) {
    refuse(`tensor ${quoted(name)} refers to a buffer that does not exist`);
  }
  if (table.length(0) > 64) refuse(`tensor ${quoted(name)} has ${table.length(0)} dimensions`);
  const shape = table.numbers(0);
  const [dtype, width] = TFLITE.elements[number] ?? [`type ${number}`, null];
  const elements = product(shape);
  const tensor = {
    name,
    dtype,
    shape,
    elements,
    data: data[buffer],
    buffer,
    isVariable: table.number(5, "Uint8") !== 0,
    isOpen: table.numbers(7).some((size) => size < 0),
    bytes: data[buffer] || elements * (width ?? 0),
    width,
  };
  checkBytes(Math.abs(tensor.bytes), `tensor ${quoted(name)}`);
  return tensor;
}

function readEntered(operator, type, place, count) {
  if (!(type in ENTERED)) return [];
  const [number, slots] = ENTERED[type];
  const options = operator.table(4);
  if (operator.number(3, "Uint8") !== number || options === null) {
    refuse(`${place} (${type}) does not name its sub-graphs`);
  }
  return slots.map((slot) => {
    const entered = options.number(slot, "Int32");
    if (entered < 0 || entered >= count) {
      refuse(`${place} (${type}) enters sub-graph ${entered}, which does not exist`);
    }
    return entered;
  });
}

/** The operators of a sub-graph that only unpack constants, which TFLM needs unpacked in the file. */
function findFolded({ tensors, operators }) {
  const known = new Set();
  tensors.forEach((tensor, at) => tensor.data && known.add(at));
  const folded = new Set();
  operators.forEach(({ type, inputs, outputs }, at) => {
    if ((type !== "DEQUANTIZE" && type !== "DENSIFY") || inputs.length !== 1) return;
    const packed = type === "DENSIFY" || tensors[inputs[0]]?.dtype === "float16";
    if (!packed || !known.has(inputs[0])) return;
    for (const output of outputs) known.add(output);
    folded.add(at);
  });
  return folded;
}

/** The sizes of the scratch buffers that a reference kernel of TFLM asks for. */
function listScratch({ type, inputs, outputs }, tensors) {
  const given = inputs.map((at) => tensors[at]);
  const made = tensors[outputs[0]];
  if (!made) return [];
  const axes = () => given[0] && given[1] && [4 * given[0].shape.length, 4 * given[1].elements];
  const unpacked = () => given[1] && [given[1].dtype === "int4" ? given[1].elements : 0];
  const sums = () => {
    if (!axes()) return null;
    const quantized = given[0].dtype === "int8" || given[0].dtype === "int16";
    return [quantized ? 4 * made.elements : 0, ...axes()];
  };
  const rules = {
    CONV_2D: unpacked,
    DEPTHWISE_CONV_2D: unpacked,
    FULLY_CONNECTED: unpacked,
    MEAN: sums,
    SUM: sums,
    REDUCE_ALL: axes,
    REDUCE_MAX: axes,
    REDUCE_MIN: axes,
    ADD_N: () => [8 * given.length], // pointers of a 64-bit machine
    MIRROR_PAD: () => given[0] && [4 * given[0].shape.length, 4 * given[0].shape.length],
    SVDF: () => {
      if (!given[0]?.shape.length || !given[1]?.shape.length) return null;
      const filters = 4 * given[0].shape[0] * given[1].shape[0];
      return given[0].dtype === "int8" ? [filters, 4 * made.elements] : [filters];
    },
    TRANSPOSE_CONV: () => {
      if (!given[2]) return null;
      if (given[2].dtype !== "int16") return given[2].dtype === "int8" ? [4 * made.elements] : [];
      const widened = given[3]?.dtype === "int16" ? 8 * given[3].elements : 0;
      return [8 * made.elements, widened];
    },
    UNIDIRECTIONAL_SEQUENCE_LSTM: () => given[19] && new Array(4).fill(given[19].bytes),
  };
  const sizes = Object.hasOwn(rules, type) ? rules[type]() : null;
  return (sizes ?? []).filter((size) => size > 0);
}

/** Builds the graph that TFLM runs, with the file's tensors in their order, then scratch and copies. */
class TfliteGraph {
  constructor(model) {
    this.model = model;
    this.tensors = [];
    this.infos = [];
    this.aliases = [];
    this.given = []; // tensors that nothing makes, though an operator reads them
    this.names = new Names();
    this.entered = new Set();
    this.workspaces = new Map();
    this.steps = 0;
    this.folded = model.subgraphs.map(findFolded);
    this.scratchInputs = findScratchInputs(model);
    const sizes = model.subgraphs.map((each) => 1 + each.operators.length + each.tensors.length);
    this.mostSteps = MOST_TIMES * sizes.reduce((all, size) => all + size, 0);
  }

  build() {
    this.model.subgraphs.forEach((_, number) => this._addTensors(number));
    const program = this.model.subgraphs[0];
    const operators = this._operators(0, 0, []);
    return {
      tensors: this.tensors,
      operators,
      inputs: [...dropMissing(program.inputs, 0), ...this.given],
      outputs: dropMissing(program.outputs, 0),
      views: [],
      aliases: this.aliases,
      alignment: ALIGNED,
      planned: new Set(["input", "output", "intermediate", "workspace"]),
    };
  }

  _fail(sentence) {
    refuse(`the model cannot run: ${sentence}`);
  }

  _addTensors(number) {
    const { tensors, operators } = this.model.subgraphs[number];
    const unpacked = new Set([...this.folded[number]].flatMap((at) => operators[at].outputs));
    tensors.forEach((info, at) => {
      const kind = this._kind(number, at, unpacked.has(at));
      if (kind === "workspace") this.given.push(this.tensors.length);
      this.infos.push(info);
      const name = this.names.distinct(info.name || `tensor ${at} of sub-graph ${number}`);
      this.tensors.push({ name, bytes: sizeOf(info), kind });
    });
  }

  _kind(number, at, unpacked) {
    const { tensors, operators, inputs, outputs, first } = this.model.subgraphs[number];
    const info = tensors[at];
    if (info.data || unpacked || !info.elements || isOnHeap(info)) return "constant";
    this.handles ??= findHandles(this.model);
    if (info.isVariable || this.handles.has(first + at)) return "variable";
    if (this.scratchInputs.has(first + at)) return "workspace";
    if (number === 0 && inputs.includes(at)) return "input";
    if (number === 0 && outputs.includes(at)) return "output";
    return "intermediate";
  }

  _operators(number, base, path) {
    if (path.includes(number)) this._fail(`sub-graph ${number} enters itself`);
    if (path.length === DEEPEST) this._fail(`sub-graphs are nested more than ${DEEPEST} deep`);
    const { operators } = this.model.subgraphs[number];
    this._count(operators.length);
    const found = [];
    operators.forEach((info, at) => {
      if (!this.folded[number].has(at)) found.push(this._operator(number, at, info, base, path));
    });
    return found;
  }

  _count(steps) {
    this.steps += steps;
    if (this.steps > this.mostSteps) {
      this._fail(`its sub-graphs are entered more than ${MOST_TIMES} times on average`);
    }
  }

  _operator(number, at, info, base, path) {
    const name = number === 0 ? `#${at}` : `#${number}.${at}`;
    if (TFLITE.unknown.includes(info.type)) {
      this._fail(`TFLM does not support ${info.type} (operator ${name})`);
    }
    const outputs = dropMissing(info.outputs, base);
    const sizes = listScratch(
      info,
      this.infos.slice(base, base + this.model.subgraphs[number].tensors.length),
    );
    const operator = {
      name,
      type: info.type,
      inputs: info.inputs.filter((each) => each >= 0).map((each) => base + each),
      outputs: [...outputs, ...this._scratch(`${number}.${at}`, name, sizes)],
      blocks: [],
      loop: info.type === "WHILE",
    };
    return info.entered.length ? this._withBlocks(operator, info, [...path, number]) : operator;
  }

  /** One tensor for all scratch of an operator, so that it fits in any order that TFLM places it in. */
  _scratch(key, name, sizes) {
    if (!sizes.length) return [];
    const made = this.tensors.length;
    const bytes = sizes.reduce((all, size) => all + roundUp(size, ALIGNED), 0);
    this.tensors.push({
      name: this.names.distinct(`${name} (workspace)`),
      bytes,
      kind: "workspace",
    });
    this.infos.push({ name: "", dtype: "uint8", shape: [bytes], elements: bytes, data: 0, bytes });
    if (this.workspaces.has(key)) this.aliases.push([this.workspaces.get(key), made]);
    else this.workspaces.set(key, made);
    return [made];
  }

  _withBlocks(operator, info, path) {
    const given = operator.loop ? operator.inputs : operator.inputs.slice(1);
    const copied = [given, operator.loop ? operator.outputs : given];
    const blocks = info.entered.map((number, at) =>
      this._block(operator, number, copied[at], path),
    );
    blocks[0].inputs = operator.outputs;
    return { ...operator, blocks };
  }

  _block(operator, number, given, path) {
    const [subgraph, base] = [this.model.subgraphs[number], this._findBase(number)];
    const results = dropMissing(subgraph.outputs, base);
    const copyIn = {
      ...operator,
      inputs: given,
      outputs: dropMissing(subgraph.inputs, base),
      blocks: [],
      loop: false,
    };
    const copyOut = { ...copyIn, inputs: [...operator.inputs, ...results], outputs: [] };
    const operators = [copyIn, ...this._operators(number, base, path), copyOut];
    return { operators, inputs: [], outputs: [] };
  }

  /** The first tensor of a sub-graph, or of a copy where it was entered before. */
  _findBase(number) {
    const { first, tensors } = this.model.subgraphs[number];
    if (!this.entered.has(number)) {
      this.entered.add(number);
      return first;
    }
    const base = this.tensors.length;
    this._count(tensors.length);
    for (let at = first; at < first + tensors.length; at++) {
      if (this.scratchInputs.has(at)) this.given.push(this.tensors.length);
      this.aliases.push([at, this.tensors.length]);
      this.infos.push(this.infos[at]);
      const tensor = this.tensors[at];
      this.tensors.push({ ...tensor, name: this.names.distinct(tensor.name) });
    }
    return base;
  }
}

function dropMissing(indices, base) {
  return [...new Set(indices.filter((at) => at >= 0).map((at) => base + at))];
}

function isOnHeap({ dtype }) {
  return dtype === "string" || dtype === "variant";
}

function isCustom(type) {
  return type === "CUSTOM" || !TFLITE.operators.includes(type);
}

/** Tensors that custom operators read and nothing makes: scratch of compilers for accelerators. */
function findScratchInputs({ subgraphs }) {
  const found = new Set();
  for (const { tensors, operators, inputs, first } of subgraphs) {
    const made = new Set([...inputs, ...operators.flatMap((each) => each.outputs)]);
    for (const operator of operators) {
      if (!isCustom(operator.type)) continue;
      for (const at of operator.inputs) {
        if (at < 0 || made.has(at)) continue;
        const { bytes, data, isVariable } = tensors[at];
        if (bytes && !data && !isVariable) found.add(first + at);
      }
    }
  }
  return found;
}

/** The results of VAR_HANDLE, which TFLM keeps outside of the arena. */
function findHandles({ subgraphs }) {
  const found = new Set();
  for (const { operators, first } of subgraphs) {
    for (const { type, outputs } of operators) {
      if (type === "VAR_HANDLE") for (const at of outputs) found.add(first + at);
    }
  }
  return found;
}

function sizeOf(info) {
  if (info.data || info.elements === 0 || isOnHeap(info)) return info.bytes;
  const open = info.shape.findIndex((size) => size < 0);
  if (open >= 0) {
    refuse(
      `tensor ${quoted(info.name)} has no size along dimension ${open}: ` +
        "convert the model with fixed shapes, or give it to memplan plan with --dim batch=N",
    );
  }
  if (info.width === null) {
    refuse(
      `tensor ${quoted(info.name)} has elements of type ${info.dtype}, whose size is known only ` +
        "at run time: it cannot be planned",
    );
  }
  return info.bytes;
}

/** What TFLM's own planner needs for a model: the peak of its plan, kernel scratch included. */
function computeHead(model, folded) {
  const requests = listRequests(model, folded).reverse();
  return firstFit(requests.sort((a, b) => b.size - a.size));
}

/** The buffers that TFLM plans, with first and last use, in its order: tensors, then scratch. */
function listRequests(model, folded) {
  const [first, last, scratch] = [new Map(), new Map(), new Map()];
  let now = 0;
  const touch = (base, indices, isMade) => {
    for (const at of indices) {
      if (at < 0) continue;
      if (isMade && !first.has(base + at)) first.set(base + at, now);
      last.set(base + at, now);
    }
  };
  const enter = (number) => {
    const subgraph = model.subgraphs[number];
    touch(subgraph.first, subgraph.inputs, true);
    subgraph.operators.forEach((operator, at) => {
      if (folded[number].has(at)) return;
      const start = ++now;
      for (const output of operator.outputs) {
        if (output >= 0 && !first.has(subgraph.first + output))
          first.set(subgraph.first + output, now);
      }
      for (const entered of operator.entered) {
        now += 1;
        enter(entered);
      }
      touch(subgraph.first, operator.inputs, false);
      touch(subgraph.first, operator.outputs, false);
      const key = number * 2 ** 26 + at;
      scratch.set(key, [scratch.get(key)?.[0] ?? start, now]);
    });
    touch(subgraph.first, subgraph.outputs, true);
  };
  enter(0);
  const handles = findHandles(model);
  const found = [];
  model.subgraphs.forEach(({ tensors, operators, first: base }, number) => {
    const unpacked = new Set([...folded[number]].flatMap((at) => operators[at].outputs));
    tensors.forEach((tensor, at) => {
      const outside =
        tensor.data || tensor.isVariable || unpacked.has(at) || handles.has(base + at);
      if (outside || !tensor.bytes) return;
      const size = roundUp(tensor.bytes, ALIGNED);
      const [start, end] = [first.get(base + at) ?? -1, last.get(base + at) ?? -1];
      found.push({ size, start, end: end + 1 });
    });
  });
  for (const key of [...scratch.keys()].sort((a, b) => a - b)) {
    const { tensors, operators } = model.subgraphs[Math.floor(key / 2 ** 26)];
    const [start, end] = scratch.get(key);
    for (const size of listScratch(operators[key % 2 ** 26], tensors)) {
      found.push({ size: roundUp(size, ALIGNED), start, end: end + 1 });
    }
  }
  return found;
}

function readTflite(bytes) {
  const model = parseTflite(bytes);
  const builder = new TfliteGraph(model);
  const graph = builder.build();
  const rows = layOut(graph);
  const notes = [];
  if (model.isPlanned)
    notes.push("the offsets in the file are dropped, and all tensors are planned");
  const unpacked = builder.folded.reduce((all, { size }) => all + size, 0);
  if (unpacked) {
    notes.push(
      `${unpacked} operators only unpack float16 or sparse weights and are not planned: ` +
        "TFLM needs them stored as float32, which memplan plan does",
    );
  }
  const [main] = model.subgraphs;
  if (main.inputs.some((at) => at >= 0 && main.tensors[at].isOpen)) {
    notes.push("open dimensions have the size that is stored in the file, as in TFLM");
  }
  const missing = model.subgraphs.flatMap(({ operators }, number) =>
    operators.filter(
      ({ type }, at) => !builder.folded[number].has(at) && !TFLITE.kernels.includes(type),
    ),
  );
  if (missing.length) {
    const names = [...new Set(missing.map(({ type }) => type))];
    notes.push(`${TFLM} has no kernel for ${listed(names)}`);
  }
  return {
    source: "tflite",
    rows,
    tensors: model.count,
    notes,
    greedy: { name: `${TFLM}'s own planner`, peak: computeHead(model, builder.folded) },
    save: unpacked
      ? null
      : (offsets) => writeOffsets(bytes, model, findOffsets(model, graph, rows, offsets)),
  };
}
