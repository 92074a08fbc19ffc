// What the page shows of a plan: the columns that `memory.js` takes, and words on it.

const VIRIDIS = "440154 472c7a 3b518b 2c718e 21908d 27ad81 5cc863 aadc32 fde725".split(" ");
const UNKNOWN = "#b0b0b0"; // as `memplan.view.classes` has it

/** 256 colours for amounts, from little to much. */
function makeScale() {
  const parts = VIRIDIS.map((colour) =>
    [0, 2, 4].map((at) => parseInt(colour.slice(at, at + 2), 16)),
  );
  return Array.from({ length: 256 }, (_, step) => {
    const place = (step / 255) * (parts.length - 1);
    const at = Math.min(Math.floor(place), parts.length - 2);
    const mixed = parts[at].map((low, i) =>
      Math.round(low + (parts[at + 1][i] - low) * (place - at)),
    );
    return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
  });
}

/** Each text once, and numbers for them. */
function encode(texts) {
  const numbers = new Map();
  const code = Int32Array.from(texts, (text) => {
    if (!numbers.has(text)) numbers.set(text, numbers.size);
    return numbers.get(text);
  });
  return { code, text: [...numbers.keys()] };
}

/** The class of every row and the colours of classes, as `memplan.view.classes` chooses them. */
function describeClasses(names, rows) {
  if (!names.some((name) => name)) return null;
  const bytes = new Map();
  names.forEach((name, at) => bytes.set(name, (bytes.get(name) ?? 0) + rows[at].size));
  const most = [...bytes.keys()].sort((a, b) => bytes.get(b) - bytes.get(a) || (a < b ? -1 : 1));
  const colours = new Map(most.slice(0, PALETTE.length).map((name, at) => [name, PALETTE[at]]));
  const numbers = encode(names);
  return {
    ...numbers,
    colour: numbers.text.map((name) => colours.get(name) ?? UNKNOWN),
    key: [...colours].map(([name, colour]) => [name || "none", colour]),
    others: most.length - colours.size,
  };
}

/** What buffers hold over time: all of themselves, but for gaps. */
function findSpans(rows) {
  const spans = [];
  rows.forEach(({ start, end, size, gaps }, row) => {
    let since = start;
    for (const [begin, until, lower, upper] of gaps ?? []) {
      if (since < begin) spans.push([row, since, begin, 0, size]);
      if (lower < upper) spans.push([row, begin, until, lower, upper]);
      since = until;
    }
    if (since < end) spans.push([row, since, end, 0, size]);
  });
  return spans;
}

/** The bytes that are held over time, section by section. */
function findLoads(spans) {
  const changes = new Map();
  for (const [, start, end, lower, upper] of spans) {
    changes.set(start, (changes.get(start) ?? 0) + upper - lower);
    changes.set(end, (changes.get(end) ?? 0) - upper + lower);
  }
  const time = Float64Array.from(changes.keys()).sort();
  const bytes = new Float64Array(Math.max(time.length - 1, 0));
  let held = 0;
  for (let at = 0; at < bytes.length; at++) bytes[at] = held += changes.get(time[at]);
  return { time, bytes, peak: String(bytes.reduce((most, load) => Math.max(most, load), 0)) };
}

/** A plan as `Memory` takes it. */
function describePlan(model, plan) {
  const { rows } = model;
  const column = (field) => Float64Array.from(rows, (row) => row[field]);
  const numbers = Float64Array.from(rows.keys());
  const spans = findSpans(rows);
  const power = Math.max(0, Math.floor((Math.log2(Math.max(plan.peak, 1)) - 2) / 10)); // from 4 KiB on
  const operators = rows.some(({ operator }) => operator);
  const verdict = findVerdict(plan.peak, plan.bound);
  const part = (at) => Float64Array.from(spans, (span) => span[at]);
  return {
    unit: { bytes: 1024 ** power, name: UNITS[power] },
    origin: "0",
    capacity: null,
    bound: String(plan.bound),
    naive: String(rows.reduce((all, { size }) => all + size, 0)),
    scale: makeScale(),
    best: 0,
    load: findLoads(spans),
    classes: {
      kind: describeClasses(
        rows.map(({ kind }) => kind),
        rows,
      ),
      operator: operators
        ? describeClasses(
            rows.map((row) => row.operator || row.kind),
            rows,
          )
        : null,
      module: null,
    },
    buffers: {
      name: rows.map(({ id }) => id),
      start: column("start"),
      end: column("end"),
      size: column("size"),
      tensors: encode(
        rows.map(({ id, tensors }) => (tensors.join() === id ? "" : listed(tensors))),
      ),
      module: encode(rows.map(() => "")),
      line: encode(rows.map(() => "")),
      made_by: encode(rows.map(({ madeBy }) => madeBy)),
      used_by: encode(rows.map(({ usedBy }) => listed(usedBy))),
      by_size: numbers.sort(
        (a, b) => rows[b].size - rows[a].size || (rows[a].id < rows[b].id ? -1 : 1),
      ),
    },
    spans: { buffer: part(0), start: part(1), end: part(2), lower: part(3), upper: part(4) },
    plans: [
      {
        name: "memplan",
        verdict: verdict.text,
        grade: verdict.grade,
        fault: "",
        peak: String(plan.peak),
        offset: plan.offsets,
        waste: null,
        supports: null,
      },
    ],
  };
}

/** How good a peak is, in the words of `memplan.view.verdict`. */
function findVerdict(peak, bound) {
  if (peak <= bound) return { grade: "good", text: "optimal: equals the lower bound" };
  const open = "a smaller peak is not ruled out";
  if (bound > 0 && 2 * bound <= peak) {
    return { grade: "open", text: `${(peak / bound).toFixed(1)} times the lower bound; ${open}` };
  }
  const share = percent(peak - bound, bound);
  const gap = `${human(peak - bound)} above the lower bound`;
  return { grade: "open", text: `${gap}${/^(-|0\.0)/.test(share) ? "" : ` (${share})`}; ${open}` };
}

/** Which buffers the peak is made of: as few of the largest ones as hold half of it. */
function findBlame(live) {
  const total = live.reduce((sum, { bytes }) => sum + bytes, 0n);
  let [count, held] = [0, 0n];
  while (2n * held < total) held += live[count++].bytes;
  const which = count === 1 ? "The largest buffer holds" : `The ${count} largest buffers hold`;
  return `${which} ${percent(held, total)} of what is live at the peak.`;
}

/** The plan as `memplan plan -o plan.csv` writes it. */
function formatPlan(rows, offsets) {
  const cell = (text) =>
    /[",\r\n]|^[ \t#]|[ \t]$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const hasAlignment = rows.some(({ alignment }) => alignment !== 1);
  const hasGaps = rows.some(({ gaps }) => gaps?.length);
  const formatGap = ([start, end, lower, upper]) =>
    `${start}-${end}${lower || upper ? `@${lower}:${upper}` : ""}`;
  const columns = [
    ["id", (row) => cell(row.id)],
    ["lower", (row) => row.start],
    ["upper", (row) => row.end],
    ["size", (row) => row.size],
    ...(hasAlignment ? [["alignment", (row) => row.alignment]] : []),
    ...(hasGaps ? [["gaps", (row) => (row.gaps ?? []).map(formatGap).join(" ")]] : []),
    ["offset", (_, at) => offsets[at]],
  ];
  const lines = rows.map((row, at) => columns.map(([, write]) => write(row, at)).join(","));
  return [columns.map(([name]) => name).join(","), ...lines, ""].join("\n");
}
