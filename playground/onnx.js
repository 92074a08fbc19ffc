// ONNX models that store the shape of every tensor, by the rules of `memplan.runtimes.onnx.read`.
//
// `ONNX`, which the build writes, has the bits of elements by type, and the operators whose results
// share memory with an input or are known before the run.

/** The fields of a message: numbers as numbers, all else as bytes; an array by field. */
function fieldsIn(bytes) {
  const found = {};
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (at >= bytes.length) refuse(`the file is cut off at byte ${at} of a message`);
      const byte = bytes[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value < 2 ** 63 ? value : value - 2 ** 64;
    }
    return refuse("the file is not a protocol buffer: a number does not end");
  };
  while (at < bytes.length) {
    const tag = varint();
    const [number, wire] = [Math.floor(tag / 8), tag % 8];
    if (number <= 0 || ![0, 1, 2, 5].includes(wire)) {
      refuse("the file is not a protocol buffer: it has a field of no kind");
    }
    let value;
    if (wire === 0) value = varint();
    else {
      const size = wire === 1 ? 8 : wire === 5 ? 4 : varint();
      if (size < 0 || at + size > bytes.length)
        refuse("the file is cut off: a field ends after it");
      value = bytes.subarray(at, at + size);
      at += size;
    }
    (found[number] ??= []).push(value);
  }
  return found;
}

/** Views on a field of a message: messages, texts, one number, many numbers. */
const messages = (fields, number) => (fields[number] ?? []).map((each) => fieldsIn(asBytes(each)));
const texts = (fields, number) => (fields[number] ?? []).map((each) => decodeText(asBytes(each)));
const textOf = (fields, number) => texts(fields, number).at(-1) ?? "";
const numberOf = (fields, number) => {
  const last = fields[number]?.at(-1) ?? 0;
  return typeof last === "number"
    ? last
    : refuse("the file is not an ONNX model: a number is bytes");
};

function asBytes(value) {
  if (typeof value === "number") refuse("the file is not an ONNX model: a message is a number");
  return value;
}

function decodeText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refuse("the file is not an ONNX model: a name is not UTF-8");
  }
}

/** Numbers that may be packed into bytes. */
function numbersOf(fields, number) {
  return (fields[number] ?? []).flatMap((each) => {
    if (typeof each === "number") return [each];
    const found = [];
    for (let at = 0; at < each.length;) {
      let [end, value] = [at, 0];
      while (end < each.length && each[end] > 127) end += 1;
      for (let byte = end; byte >= at; byte--) value = value * 128 + (each[byte] & 127);
      found.push(value < 2 ** 63 ? value : value - 2 ** 64);
      at = end + 1;
    }
    return found;
  });
}

/** The type of a value: its element, and its shape, which is null where a size is not known. */
function typeOf(fields) {
  const [type] = messages(fields, 2);
  if (!type) return null;
  const [optional] = messages(type, 9);
  const [tensor] = messages(optional ? (messages(optional, 1)[0] ?? {}) : type, 1);
  if (!tensor) return { element: 0, shape: [], isOpaque: true };
  const [shape] = messages(tensor, 2);
  const sizes = shape && messages(shape, 1).map((side) => (1 in side ? numberOf(side, 1) : null));
  return { element: numberOf(tensor, 1), shape: sizes && !sizes.includes(null) ? sizes : null };
}

function onnxBytes(name, { element, shape }) {
  if (!Object.hasOwn(ONNX.bits, element)) {
    refuse(`tensor ${quoted(name)} has the element type ${element}, which is not in ONNX`);
  }
  if (shape.some((size) => size < 0)) refuse(`tensor ${quoted(name)} has a negative size`);
  return checkBytes(Math.ceil((product(shape) * ONNX.bits[element]) / 8), `tensor ${quoted(name)}`);
}

/** Builds the graph of a model: weights first, then inputs, then what operators make. */
class OnnxGraph {
  constructor(fields) {
    const [graph] = messages(fields, 7);
    if (!graph) refuse("the file is not an ONNX model: it has no graph");
    if (fields[25])
      refuse("the functions of the model are not read by this page: use memplan plan");
    this.graph = graph;
    this.types = new Map();
    for (const number of [13, 12, 11]) {
      for (const value of messages(graph, number)) this.types.set(textOf(value, 1), typeOf(value));
    }
    this.weights = new Map();
    for (const weight of [
      ...messages(graph, 5),
      ...messages(graph, 15).flatMap((each) => messages(each, 1)),
    ]) {
      const type = { element: numberOf(weight, 2), shape: numbersOf(weight, 1) };
      this.weights.set(textOf(weight, 8), type);
    }
    this.tensors = [];
    this.scope = new Map();
    this.views = [];
    this.unknown = [];
    this.opaque = [];
  }

  build() {
    const inputs = messages(this.graph, 11).map((value) => textOf(value, 1));
    const results = messages(this.graph, 12).map((value) => textOf(value, 1));
    const open = new Set(inputs.filter((name) => this.weights.has(name))); // a caller may replace them
    for (const [name, type] of this.weights) this._add(name, "constant", onnxBytes(name, type));
    for (const name of inputs) {
      if (!this.weights.has(name)) this._addTyped(name, "input");
    }
    const nodes = messages(this.graph, 1);
    const read = new Set([...nodes.flatMap((node) => texts(node, 1)), ...results]);
    const operators = nodes
      .map((node) => this._node(node, new Set(results), open, read))
      .filter((each) => each);
    if (this.unknown.length) {
      refuse(
        `the file stores no shape for ${listed(this.unknown.map(quoted))}: store them with ` +
          "onnx.shape_inference, or use memplan plan, which infers them",
      );
    }
    const missing = results.find((name) => !this.scope.has(name));
    if (missing !== undefined)
      refuse(`nothing makes tensor ${quoted(missing)}, an output of the graph`);
    const kinds = (kind) =>
      this.tensors.flatMap((tensor, at) => (tensor.kind === kind ? [at] : []));
    return {
      tensors: this.tensors,
      operators,
      inputs: kinds("input"),
      outputs: [...new Set(results.map((name) => this.scope.get(name)))],
      views: this.views,
      aliases: [],
      alignment: ONNX.alignment,
      planned: new Set(ONNX.planned),
    };
  }

  _node(node, results, open, read) {
    const [inputs, type, domain] = [texts(node, 1), textOf(node, 4), textOf(node, 7)];
    const name = textOf(node, 3);
    let outputs = texts(node, 2);
    if (type === "Dropout" && !outputs.slice(1).some((each) => read.has(each)))
      outputs = outputs.slice(0, 1);
    const attributes = messages(node, 5);
    if (attributes.some((each) => each[6] || each[11])) {
      refuse(
        `operator ${quoted(name || type)} has graphs inside, which this page does not read: use memplan plan`,
      );
    }
    const slots = inputs.map((each) => {
      if (!each) return null;
      if (this.scope.has(each)) return this.scope.get(each);
      return refuse(
        `tensor ${quoted(each)}, which is read by operator ${quoted(name || type)}, is not made before`,
      );
    });
    const isStandard = domain === "" || domain === "ai.onnx";
    const isConstant = slots.every((at) => at === null || this.tensors[at].kind === "constant");
    const isFolded =
      isStandard &&
      !ONNX.random.includes(type) &&
      !outputs.some((each) => results.has(each)) &&
      (ONNX.shapeOnly.includes(type) || (isConstant && !inputs.some((each) => open.has(each))));
    const made = outputs.map((each) => {
      if (!each) return null;
      if (this.scope.has(each)) refuse(`tensor ${quoted(each)} is made twice`);
      if (isFolded) return this._add(each, "constant", 0);
      return this._addTyped(each, results.has(each) ? "output" : "intermediate");
    });
    if (isFolded) return null;
    this._share(type, isStandard, slots, outputs, made, results);
    const there = (at) => at !== null;
    return {
      name,
      type: domain ? `${domain}.${type}` : type,
      inputs: slots.filter(there),
      outputs: made.filter(there),
    };
  }

  /** Make the output of a view operator a view of its input. */
  _share(type, isStandard, [source], outputs, [target], results) {
    if (!isStandard || !ONNX.views.includes(type) || results.has(outputs[0])) return;
    const trains = type === "Dropout" && outputs.length > 1;
    if (trains || (source ?? null) === null || (target ?? null) === null) return;
    if (this.tensors[source].bytes === this.tensors[target].bytes) {
      this.views.push({ tensor: target, base: source, offset: 0 });
    }
  }

  _addTyped(name, kind) {
    const type = this.types.get(name);
    if (type?.isOpaque) {
      this.opaque.push(name);
      return this._add(name, kind, 0);
    }
    if (!type?.shape || !type.element) {
      this.unknown.push(name);
      return this._add(name, kind, 0);
    }
    if (type.element === 8) this.opaque.push(name);
    return this._add(name, kind, onnxBytes(name, type));
  }

  _add(name, kind, bytes) {
    this.scope.set(name, this.tensors.length);
    return this.tensors.push({ name, kind, bytes }) - 1;
  }
}

function readOnnx(bytes) {
  const builder = new OnnxGraph(fieldsIn(bytes));
  const rows = layOut(builder.build());
  const notes = [];
  if (builder.opaque.length) {
    notes.push(
      `sequences and strings have no size in the file and are not planned: ${listed(builder.opaque)}`,
    );
  }
  return { source: "onnx", rows, tensors: builder.tensors.length, notes, save: null };
}
