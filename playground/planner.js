// The core as WebAssembly, and the rule of runtimes beside it.

const STATUSES = ["optimal", "feasible", "infeasible", "unknown", "fits"];

const SLICES = 512; // of time: a buffer is compared with those that share a slice with it

/** The peak of first fit in the order of some rows: each at the lowest address that is free. */
function firstFit(rows) {
  const first = rows.reduce((least, { start }) => Math.min(least, start), Infinity);
  const last = rows.reduce((most, { end }) => Math.max(most, end), -Infinity);
  const slices = Array.from({ length: SLICES }, () => []);
  const sliceOf = (time) => Math.floor(((time - first) / (last - first)) * (SLICES - 1));
  let peak = 0;
  for (const row of rows) {
    const near = slices.slice(sliceOf(row.start), sliceOf(row.end - 1) + 1);
    const apart = ({ start, end }) => end <= row.start || row.end <= start;
    const others = new Set(near.flatMap((slice) => slice.filter((other) => !apart(other))));
    let offset = 0;
    for (const other of [...others].sort((a, b) => a.offset - b.offset)) {
      if (other.offset - offset >= row.size) break;
      offset = Math.max(offset, roundUp(other.offset + other.size, row.alignment ?? 1));
    }
    const placed = { offset, size: row.size, start: row.start, end: row.end };
    for (const slice of near) slice.push(placed);
    peak = Math.max(peak, offset + row.size);
  }
  return peak;
}

class Core {
  /** Start a module, of which the functions are synchronous. */
  static async start(bytes) {
    const core = new Core();
    // What the C library asks of its host: the clock, and nowhere to write.
    const host = {
      clock_time_get: (_, __, at) => {
        const now = BigInt(Math.round(performance.now() * 1e6));
        new DataView(core.exports.memory.buffer).setBigInt64(at, now, true);
        return 0;
      },
      proc_exit: (code) => {
        throw new Error(`the core ended with ${code}`);
      },
    };
    const { module, instance } = await WebAssembly.instantiate(bytes, {
      wasi_snapshot_preview1: new Proxy(host, { get: (own, name) => own[name] ?? (() => 8) }),
      env: new Proxy({}, { get: () => () => 0 }),
    });
    core.exports = instance.exports;
    core.exports._initialize?.();
    return core;
  }

  /** Plan rows of a problem, all of them in at most so many seconds. */
  solve(rows, seconds) {
    const { malloc, free, memory, solve, why } = this.exports;
    const gaps = rows.flatMap(({ gaps: own }, row) => (own ?? []).map((gap) => [row, ...gap]));
    const columns = ["start", "end", "size", "alignment", "pin", "hint"];
    const [n, m] = [rows.length, gaps.length];
    const places = [6 * n, 5 * m, n + 2].map((count) => malloc(8 * count + 8));
    if (places.includes(0)) refuse("there is not enough memory to plan so many buffers here");
    const [at, gapsAt, out] = places.map((place) => place / 8);
    const numbers = new Float64Array(memory.buffer);
    columns.forEach((column, number) => {
      const first = at + number * n;
      for (let row = 0; row < n; row++) numbers[first + row] = rows[row][column] ?? -1;
    });
    gaps.forEach((gap, number) =>
      gap.forEach((value, c) => (numbers[gapsAt + c * m + number] = value)),
    );
    const status = solve(n, places[0], m, places[1], seconds, places[2]);
    const answer = new Float64Array(memory.buffer, places[2], n + 2); // memory may have grown
    const found = {
      status: STATUSES[status],
      offsets: Float64Array.from(answer.subarray(0, n)),
      peak: answer[n],
      bound: answer[n + 1],
    };
    places.forEach((place) => free(place));
    if (status < 0) refuse(this._text(why()));
    return found;
  }

  _text(at) {
    const bytes = new Uint8Array(this.exports.memory.buffer);
    return new TextDecoder().decode(bytes.subarray(at, bytes.indexOf(0, at)));
  }
}
