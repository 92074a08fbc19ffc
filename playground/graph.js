// Turns a graph into the rows of a problem, as `memplan.programs.graph` does: lifetimes, views, aliases.
//
// A graph has `tensors` ({name, bytes, kind, pin}), `operators` ({name, type, inputs, outputs,
// workspace, blocks, loop}, indices of tensors), `inputs`, `outputs`, `views` ({tensor, base,
// offset}), `aliases` (pairs), `alignment`, and the kinds that are `planned`.

const GIVEN = new Set(["input", "constant", "variable"]); // what is there before the first step

/** All operators, each before those in its blocks. */
function* walk(operators) {
  for (const operator of operators) {
    yield operator;
    for (const block of operator.blocks ?? []) yield* walk(block.operators);
  }
}

/** The tensors at the ends of the chains of bases, by view. */
function findOutermost(graph) {
  const base = new Map();
  for (const view of graph.views) {
    if (base.has(view.tensor)) {
      refuse(`tensor ${quoted(graph.tensors[view.tensor].name)} is a view of two tensors`);
    }
    base.set(view.tensor, view.base);
  }
  const found = new Map();
  for (const view of base.keys()) {
    const path = [];
    let at = view;
    while (base.has(at) && !found.has(at)) {
      if (path.length > base.size) {
        refuse(`the view ${quoted(graph.tensors[at].name)} is a view of itself`);
      }
      path.push(at);
      at = base.get(at);
    }
    const end = found.get(at) ?? at;
    for (const each of path) found.set(each, end);
  }
  return found;
}

/** Refuse operators that read what is not made before, and tensors that two of them make. */
function checkOrder(graph, outermost) {
  const there = new Set(graph.inputs);
  graph.tensors.forEach((tensor, at) => GIVEN.has(tensor.kind) && there.add(at));
  const made = new Set();
  const read = (at, how) => {
    if (there.has(at) || there.has(outermost.get(at))) return;
    refuse(`tensor ${quoted(graph.tensors[at].name)}, which ${how}, is not made before`);
  };
  const run = (operators) => {
    for (const operator of operators) {
      const name = quoted(operator.name || operator.type);
      for (const at of operator.inputs) read(at, `is read by operator ${name}`);
      for (const block of operator.blocks ?? []) {
        for (const at of block.inputs) there.add(at);
        run(block.operators);
        for (const at of block.outputs) read(at, `is handed out by a block of ${name}`);
      }
      for (const at of operator.outputs) {
        if (made.has(at)) refuse(`two operators make tensor ${quoted(graph.tensors[at].name)}`);
        made.add(at);
        there.add(at);
      }
    }
  };
  run(graph.operators);
  for (const at of graph.outputs) read(at, "is an output of the graph");
}

/** Counts the steps of operators, and notes when they touch tensors. */
class Clock {
  constructor(graph, outermost) {
    this.now = 0;
    this.first = new Map();
    this.last = new Map();
    this.touched = [];
    this.outermost = outermost;
    const begin = this._hasUnreadInput(graph) ? -1 : 0;
    graph.tensors.forEach(({ kind }, at) => GIVEN.has(kind) && this.touch(at, begin, begin + 1));
    for (const at of graph.inputs) this.touch(at, begin, begin + 1);
    this.run(graph.operators);
    const end = Math.max(this.now, 1);
    const wanted = new Set(["output", "constant", "variable"]);
    graph.tensors.forEach(({ kind }, at) => wanted.has(kind) && this.touch(at, end - 1, end));
    for (const at of graph.outputs) this.touch(at, end - 1, end);
  }

  /** Whether nothing reads a planned input, so that it is over before the first operator. */
  _hasUnreadInput(graph) {
    if (!graph.planned.has("input")) return false;
    const used = new Set(graph.outputs);
    for (const { inputs, outputs, blocks } of walk(graph.operators)) {
      for (const ends of [inputs, outputs]) for (const at of ends) used.add(at);
      for (const block of blocks ?? []) {
        for (const ends of [block.inputs, block.outputs]) for (const at of ends) used.add(at);
      }
    }
    for (const at of [...used]) if (this.outermost.has(at)) used.add(this.outermost.get(at));
    return graph.inputs.some((at) => !used.has(at) && graph.tensors[at].bytes);
  }

  touch(at, start, end) {
    const { first, last } = this;
    if (!first.has(at) || start < first.get(at)) first.set(at, start);
    if (!last.has(at) || end > last.get(at)) last.set(at, end);
    this.touched.push(at);
    if (this.outermost.has(at)) this.touch(this.outermost.get(at), start, end);
  }

  run(operators) {
    for (const operator of operators) {
      const [begin, mark] = [this.now, this.touched.length];
      this.now += 1;
      for (const at of operator.inputs) this.touch(at, begin, this.now);
      if (operator.blocks?.length) {
        this._runBlocks(operator, begin);
        if (operator.loop) this._keepUntilLoopEnds(operator, begin, mark);
      }
      operator.span = [begin, this.now];
      for (const at of operator.outputs) this.touch(at, this.now - 1, this.now);
    }
  }

  _runBlocks(operator, begin) {
    let copied = null; // the last step of the first block, which copies its results to the outputs
    for (const block of operator.blocks) {
      for (const at of block.inputs) this.touch(at, begin, this.now);
      this.run(block.operators);
      for (const at of block.outputs) this.touch(at, this.now - 1, this.now);
      copied ??= this.now - 1;
    }
    this.now += 1;
    for (const at of operator.outputs) this.touch(at, copied, this.now);
  }

  _keepUntilLoopEnds(operator, begin, mark) {
    const held = new Set();
    for (const block of operator.blocks) {
      for (const ends of [block.inputs, block.outputs]) for (const at of ends) held.add(at);
    }
    for (const at of this.touched.slice(mark)) if (this.first.get(at) <= begin) held.add(at);
    for (const at of held) this.touch(at, begin, this.now);
  }
}

/** A forest of tensors with their offsets in their parents; each tree is a piece of memory. */
class Sharing {
  constructor(graph, first) {
    this.tensors = graph.tensors;
    this.first = first;
    this.parent = graph.tensors.map((_, at) => at);
    this.offset = new Array(graph.tensors.length).fill(0);
    for (const { tensor, base, offset } of graph.views) {
      this.parent[tensor] = base;
      this.offset[tensor] = offset;
    }
    for (const { tensor } of graph.views) this._requireInside(tensor);
    for (const [one, other] of graph.aliases) this._join(one, other);
  }

  /** The base of a tensor, and its offset there. */
  find(tensor) {
    const path = [];
    while (this.parent[tensor] !== tensor) {
      path.push(tensor);
      tensor = this.parent[tensor];
    }
    let offset = 0;
    for (const node of path.reverse()) {
      offset += this.offset[node];
      this.parent[node] = tensor;
      this.offset[node] = offset;
    }
    return [tensor, offset];
  }

  _requireInside(tensor) {
    const [base, offset] = this.find(tensor);
    const [part, whole] = [this.tensors[tensor], this.tensors[base]];
    if (offset + part.bytes > whole.bytes) {
      refuse(`the view ${quoted(part.name)} reaches beyond ${quoted(whole.name)}`);
    }
  }

  _join(one, other) {
    let [[a, atA], [b, atB]] = [this.find(one), this.find(other)];
    if (a === b) {
      if (atA === atB) return;
      const names = [one, other].map((at) => quoted(this.tensors[at].name));
      refuse(`${names.join(" and ")} must have the same memory, but lie at different offsets`);
    }
    const [since, before] = [this.first.get(a) ?? 0, this.first.get(b) ?? 0];
    const order = atA - atB || before - since || b - a;
    if (order < 0) [a, atA, b, atB] = [b, atB, a, atA];
    this.parent[b] = a;
    this.offset[b] = atA - atB;
  }
}

/** The rows of the problem of placing what is planned in a graph. */
function layOut(graph) {
  const outermost = findOutermost(graph);
  checkOrder(graph, outermost);
  const clock = new Clock(graph, outermost);
  const sharing = new Sharing(graph, clock.first);
  const members = new Map();
  graph.tensors.forEach((_, at) => {
    const [base] = sharing.find(at);
    if (!members.has(base)) members.set(base, []);
    members.get(base).push(at);
  });
  const { made, used } = findUsers(graph);
  const rows = [];
  for (const base of [...members.keys()].sort((a, b) => a - b)) {
    const row = makeRow(graph, clock, sharing, base, members.get(base));
    if (row) rows.push({ ...row, ...describeUse(row, made, used) });
  }
  rows.push(...makeWorkspaces(graph));
  return rows.filter((row) => graph.planned.has(row.kind));
}

function makeRow(graph, clock, sharing, base, group) {
  const { tensors, alignment } = graph;
  const used = group.filter((at) => (clock.last.get(at) ?? 0) > (clock.first.get(at) ?? 0));
  const ends = group.map((at) => sharing.offset[at] + tensors[at].bytes);
  const size = ends.reduce((most, end) => Math.max(most, end), 0);
  if (!used.length || !size) return null;
  const start = used.reduce((least, at) => Math.min(least, clock.first.get(at)), Infinity);
  const end = used.reduce((most, at) => Math.max(most, clock.last.get(at)), -Infinity);
  const kinds = [base, ...group].map((at) => tensors[at].kind);
  const name = tensors[base].name;
  const pins = new Set(
    group
      .filter((at) => tensors[at].pin !== null && tensors[at].pin !== undefined)
      .map((at) => tensors[at].pin - sharing.offset[at]),
  );
  if (pins.size > 1) {
    refuse(`${quoted(name)} shares its memory with a tensor that is pinned elsewhere`);
  }
  return {
    id: name,
    start,
    end,
    size: checkBytes(roundUp(size, alignment), `tensor ${quoted(name)}`),
    alignment,
    pin: pins.size ? [...pins][0] : -1,
    kind: kinds.find((kind) => kind !== "intermediate") ?? "intermediate",
    members: group.map((at) => [at, sharing.offset[at]]),
    tensors: group.map((at) => tensors[at].name),
  };
}

/** By tensor: the operator that makes it, and those that read it. */
function findUsers(graph) {
  const [made, used] = [new Map(), new Map()];
  for (const operator of walk(graph.operators)) {
    for (const at of operator.outputs) if (!made.has(at)) made.set(at, operator);
    for (const at of operator.inputs) {
      if (!used.has(at)) used.set(at, new Set());
      used.get(at).add(describe(operator));
    }
  }
  return { made, used };
}

function describe({ name, type }) {
  return name ? `${name} (${type})` : type;
}

function describeUse({ members }, made, used) {
  const makers = members.map(([at]) => made.get(at)).filter((each) => each);
  return {
    madeBy: makers.length ? describe(makers[0]) : "",
    operator: makers.length ? makers[0].type : "",
    usedBy: [...new Set(members.flatMap(([at]) => [...(used.get(at) ?? [])]))],
  };
}

function makeWorkspaces(graph) {
  const names = new Names();
  for (const tensor of graph.tensors) names.distinct(tensor.name);
  const rows = [];
  for (const operator of walk(graph.operators)) {
    if (!operator.workspace) continue;
    const plain = `${operator.name || operator.type} (workspace)`;
    rows.push({
      id: names.distinct(plain),
      start: operator.span[0],
      end: operator.span[1],
      size: checkBytes(roundUp(operator.workspace, graph.alignment), quoted(plain)),
      alignment: graph.alignment,
      pin: -1,
      kind: "workspace",
      members: [],
      tensors: [],
      madeBy: "",
      operator: operator.type,
      usedBy: [],
    });
  }
  return rows;
}
