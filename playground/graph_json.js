// Graphs of memplan as JSON, as `memplan.programs.sources.graph_json` reads them.
//
// `GRAPH_BITS`, which the build writes, has the bits of elements by type.

const fieldsOf = (required, optional) => ({
  required: required.split(" "),
  optional: optional.split(" "),
});
const GRAPH_FIELDS = {
  document: fieldsOf(
    "memplan_graph tensors operators",
    "name source alignment planned inputs outputs views aliases groups row_axis",
  ),
  tensor: fieldsOf("name", "bytes dtype shape kind pin"),
  view: fieldsOf("tensor of", "offset"),
  operator: fieldsOf(
    "type",
    "name inputs outputs stream workspace in_place blocks loop module line reads why_whole macs",
  ),
  block: fieldsOf("operators", "name inputs outputs"),
};
const KINDS = ["input", "output", "constant", "intermediate", "variable", "workspace", "outside"];
const MOST_LEVELS = 64;

function shown(value) {
  if (typeof value === "string") return quoted(value);
  return Array.isArray(value)
    ? "an array"
    : value && typeof value === "object"
      ? "an object"
      : String(value);
}

class GraphReader {
  constructor() {
    this.index = new Map();
  }

  read(text) {
    let document;
    try {
      document = JSON.parse(text);
    } catch (error) {
      refuse(`the file is not valid JSON: ${error.message.replace(/\s+/g, " ")}`);
    }
    if (document?.memplan) {
      refuse(
        "this is a problem, plan or trace of memplan as JSON, which memplan plan reads; this page reads its graphs",
      );
    }
    if (document?.memplan_graph !== 1) {
      refuse('the file is JSON, but not a graph: it does not contain "memplan_graph": 1');
    }
    this.check(document, "the document", "document");
    const rows = this.objects(document.tensors, "tensors", "tensor");
    rows.forEach((row, at) => {
      if (typeof row.name !== "string" || !row.name || this.index.has(row.name)) {
        refuse(`tensors[${at}].name is ${shown(row.name)}; every tensor needs a name of its own`);
      }
      this.index.set(row.name, at);
    });
    const [inputs, outputs] = ["inputs", "outputs"].map((each) => this.names(document[each], each));
    const named = new Map([
      ...outputs.map((at) => [at, "output"]),
      ...inputs.map((at) => [at, "input"]),
    ]);
    const planned = document.planned && this.array(document.planned, "planned");
    planned?.forEach((kind, at) => this.kind(kind, `planned[${at}]`));
    if (this.array(document.groups, "groups").length) {
      refuse(
        "its groups, tensors that must lie side by side, are not read by this page: use memplan plan",
      );
    }
    const views = this.objects(document.views, "views", "view").map((row, at) => ({
      tensor: this.name(row.tensor, `views[${at}].tensor`),
      base: this.name(row.of, `views[${at}].of`),
      offset: this.whole(row.offset, `views[${at}].offset`, 0),
    }));
    const isView = new Set(views.map(({ tensor }) => tensor));
    const tensors = rows.map((row, at) =>
      this.tensor(row, `tensors[${at}]`, named.get(at), isView.has(at)),
    );
    const operators = this.operators(document.operators, "operators", 0);
    if (new Set(operators.map(({ stream }) => stream)).size > 1) {
      refuse("operators on parallel streams are not read by this page: use memplan plan");
    }
    return {
      tensors,
      operators,
      inputs,
      outputs,
      views,
      aliases: this.pairs(document.aliases, "aliases"),
      alignment: Math.max(1, this.whole(document.alignment, "alignment", 1)),
      planned: new Set(planned ?? ["input", "output", "intermediate", "workspace"]),
    };
  }

  tensor(row, where, named, isView) {
    const kind = row.kind ? this.kind(row.kind, `${where}.kind`) : (named ?? "intermediate");
    const shape = row.shape && this.array(row.shape, `${where}.shape`);
    shape?.forEach((side, at) => this.whole(side, `${where}.shape[${at}]`, 0));
    const bits = Object.hasOwn(GRAPH_BITS, row.dtype ?? "") ? GRAPH_BITS[row.dtype] : 0;
    const least = Math.ceil(((shape ? product(shape) : 0) * bits) / 8);
    const hasBytes = row.bytes !== undefined && row.bytes !== null;
    if (!hasBytes && !(shape && bits))
      refuse(`${where} has no size: give bytes, or both dtype and shape`);
    const bytes = hasBytes ? this.whole(row.bytes, `${where}.bytes`, 0) : checkBytes(least, where);
    if (bytes < least && !isView && kind !== "constant") {
      refuse(
        `${where}.bytes is ${bytes}, but its dtype and shape take ${least}: correct one of them, or leave bytes out`,
      );
    }
    const hasPin = row.pin !== undefined && row.pin !== null;
    return {
      name: row.name,
      bytes,
      kind,
      pin: hasPin ? this.whole(row.pin, `${where}.pin`, 0) : null,
    };
  }

  operators(value, where, depth) {
    if (depth > MOST_LEVELS) refuse(`the graph has blocks nested more than ${MOST_LEVELS} deep`);
    return this.objects(value, where, "operator").map((row, at) => {
      const place = `${where}[${at}]`;
      const blocks = this.objects(row.blocks, `${place}.blocks`, "block").map((block, number) => {
        const inside = `${place}.blocks[${number}]`;
        return {
          operators: this.operators(block.operators, `${inside}.operators`, depth + 1),
          inputs: this.names(block.inputs, `${inside}.inputs`),
          outputs: this.names(block.outputs, `${inside}.outputs`),
        };
      });
      return {
        name: this.text(row.name, `${place}.name`),
        type: this.text(row.type, `${place}.type`),
        inputs: this.names(row.inputs, `${place}.inputs`),
        outputs: this.names(row.outputs, `${place}.outputs`),
        stream: this.whole(row.stream, `${place}.stream`, 0),
        workspace: this.whole(row.workspace, `${place}.workspace`, 0),
        blocks,
        loop: row.loop === true,
      };
    });
  }

  pairs(value, where) {
    return this.array(value, where).map((pair, at) => {
      const names = this.names(pair, `${where}[${at}]`);
      if (names.length !== 2) refuse(`${where}[${at}] has ${names.length} names; it must have two`);
      return names;
    });
  }

  names(value, where) {
    return this.array(value, where).map((name, at) => this.name(name, `${where}[${at}]`));
  }

  name(name, where) {
    if (!this.index.has(name)) refuse(`${where} is ${shown(name)}; no tensor has this name`);
    return this.index.get(name);
  }

  kind(value, where) {
    if (!KINDS.includes(value))
      refuse(`${where} is ${shown(value)}; it must be one of ${KINDS.join(", ")}`);
    return value;
  }

  text(value, where) {
    if (value === undefined || value === null) return "";
    if (typeof value !== "string") refuse(`${where} is ${shown(value)}; it must be a string`);
    return value;
  }

  whole(value, where, otherwise) {
    if (value === undefined || value === null) return otherwise;
    if (!Number.isSafeInteger(value) || value < 0) {
      refuse(`${where} is ${shown(value)}; it must be a whole number between 0 and 2^53`);
    }
    return value;
  }

  array(value, where) {
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value)) refuse(`${where} is ${shown(value)}; it must be an array`);
    return value;
  }

  objects(value, where, kind) {
    const rows = this.array(value, where);
    rows.forEach((row, at) => this.check(row, `${where}[${at}]`, kind));
    return rows;
  }

  check(row, where, kind) {
    if (!row || typeof row !== "object" || Array.isArray(row)) {
      refuse(`${where} is ${shown(row)}; it must be an object`);
    }
    const { required, optional } = GRAPH_FIELDS[kind];
    for (const field of Object.keys(row)) {
      if (!required.includes(field) && !optional.includes(field)) {
        refuse(`${where} has the unknown field ${quoted(field)}`);
      }
    }
    for (const field of required) {
      if (!(field in row)) refuse(`${where} has no field ${quoted(field)}`);
    }
  }
}

function readGraphJson(text) {
  const graph = new GraphReader().read(text);
  return {
    source: "graph",
    rows: layOut(graph),
    tensors: graph.tensors.length,
    notes: [],
    save: null,
  };
}
