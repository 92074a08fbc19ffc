// The panels next to and below the figures. Names may hold any text, so that they become text
// nodes, and nothing here parses HTML.

const PAGE = 50; // rows of the table of all buffers
const LIVE = 100; // rows of the table of a moment, until the user asks for more
const LINKS = 60; // of a list

const find = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A row of a table that can be chosen, with the mouse and with the keyboard. */
function rowOf(memory, row, ...cells) {
  const name = make("th", { scope: "row", title: memory.name[row] }, memory.name[row]);
  return make(
    "tr",
    { "data-row": row, tabindex: 0 },
    name,
    ...cells.map((text) => make("td", {}, text)),
  );
}

function lifetime(memory, row) {
  return `[${WHOLE.format(memory.start[row])}, ${WHOLE.format(memory.end[row])})`;
}

/** The facts of a buffer: pairs of a word and a text. */
function factsOf(memory, plan, row) {
  const address = `${WHOLE.format(plan.offset[row])} – ${WHOLE.format(plan.endOf(row))}`;
  return [
    ["size", exact(memory.size[row])],
    ["lifetime", lifetime(memory, row)],
    ["offset", address],
    ["kind", memory.kind(row)],
    ["operator", memory.made_by(row) || memory.operator(row)],
    ["used by", memory.used_by(row)],
    ["module", memory.module(row)],
    ["source", memory.line(row)],
    ["tensors", memory.tensors(row)],
  ].filter(([, text]) => text);
}

function drawFacts(list, facts) {
  list.replaceChildren(
    ...facts.flatMap(([word, text]) => [make("dt", {}, word), make("dd", {}, text)]),
  );
}

/** Show a box next to the pointer that says what is under it. */
function drawHover(memory, plan, span, pointer) {
  const box = find("hover");
  box.hidden = span < 0;
  if (box.hidden) return;
  const row = memory.row[span];
  const facts = factsOf(memory, plan, row);
  if (memory.held(span) !== BigInt(memory.size[row])) {
    facts.splice(1, 0, ["holds now", exact(memory.held(span))]);
  }
  box.querySelector("strong").textContent = memory.name[row];
  drawFacts(box.querySelector("dl"), facts);
  const right = pointer.x + 16 + box.offsetWidth > innerWidth;
  const left = right ? pointer.x - 16 - box.offsetWidth : pointer.x + 16;
  box.style.left = `${Math.max(left, 4)}px`;
  box.style.top = `${Math.max(Math.min(pointer.y + 16, innerHeight - box.offsetHeight - 4), 4)}px`;
}

/** Show the facts of a buffer, what it sits on and why; `row` null shows a hint. */
function drawBuffer(memory, plan, row) {
  const panel = find("buffer");
  panel.classList.toggle("empty", row === null);
  panel.querySelector("h3").textContent = row === null ? "" : memory.name[row];
  drawFacts(find("buffer-facts"), row === null ? [] : factsOf(memory, plan, row));
  const known = row !== null && plan.supports !== null;
  drawLinks(find("sits-on"), memory, known ? plan.below(row) : [], "nothing");
  drawLinks(find("carries"), memory, known ? plan.above(row) : [], "nothing");
  const chain = known ? plan.chain(row) : { rows: [], ground: "unknown: the plan is invalid" };
  drawLinks(find("bounds"), memory, chain.rows);
  find("bounds").append(make("li", {}, chain.ground));
  find("buffer-plan").textContent = [
    row !== null && plan.peakSection >= 0 && row === plan.peakRow ? "at the top of the peak" : "",
    memory.plans.length > 1 ? `in ${plan.name}` : "",
  ]
    .filter((each) => each)
    .join(", ");
}

function drawLinks(list, memory, rows, none) {
  const links = Array.from(rows.slice(0, LINKS), (row) =>
    make(
      "li",
      {},
      make("a", { href: "#buffer", "data-row": row }, memory.name[row]),
      ` ${human(memory.size[row])}`,
    ),
  );
  if (rows.length > LINKS) links.push(make("li", {}, `and ${plural(rows.length - LINKS, "other")}`));
  if (!rows.length && none) links.push(make("li", { class: "none" }, none));
  list.replaceChildren(...links);
}

/** List the buffers that are live at a place on the time axis; `x` null shows a hint. */
function drawMoment(memory, plan, x, all = false) {
  const panel = find("moment");
  panel.classList.toggle("empty", x === null);
  const live = x === null ? [] : memory.live(x);
  const load = live.reduce((sum, { bytes }) => sum + bytes, 0n);
  const rows = live.slice(0, all ? live.length : LIVE);
  const time = x === null ? "" : `time ${WHOLE.format(memory.time(x))}`;
  find("moment-time").textContent = plan.isPeak(x) ? `${time}, the peak` : time;
  panel.querySelector("caption").textContent =
    x === null
      ? ""
      : `${plural(live.length, "buffer")}, ${exact(load)}: ` +
        `${percent(load, memory.loadPeak)} of the greatest load`;
  panel
    .querySelector("tbody")
    .replaceChildren(
      ...rows.map(({ row, bytes }) => rowOf(memory, row, human(bytes), percent(bytes, load))),
    );
  const more = find("moment-all");
  more.hidden = rows.length === live.length;
  more.textContent = `show ${plural(live.length - rows.length, "other")}`;
}

/** One page of the table of all buffers, largest first, of those that the search found. */
class Table {
  constructor(memory) {
    this.memory = memory;
    this.page = 0;
    const columns = ["buffer", "bytes", "lifetime"];
    const offsets = memory.plans.map(({ name }) => (memory.plans.length > 1 ? `offset in ${name}` : "offset"));
    const heads = [...columns, ...offsets, "operator", "source"];
    find("buffers").tHead.rows[0].replaceChildren(
      ...heads.map((text) => make("th", { scope: "col" }, text)),
    );
    find("buffers-before").addEventListener("click", () => this.draw(this.page - 1));
    find("buffers-after").addEventListener("click", () => this.draw(this.page + 1));
    this.keep(null);
  }

  keep(matches) {
    const { bySize } = this.memory;
    this.rows = matches ? bySize.filter((row) => matches[row]) : bySize;
    this.draw(0);
  }

  draw(page) {
    const { memory, rows } = this;
    this.page = page;
    const shown = Array.from(rows.subarray(page * PAGE, (page + 1) * PAGE));
    const table = find("buffers");
    table.tBodies[0].replaceChildren(
      ...shown.map((row) =>
        rowOf(
          memory,
          row,
          WHOLE.format(memory.size[row]),
          lifetime(memory, row),
          ...memory.plans.map((plan) => WHOLE.format(plan.offset[row])),
          memory.made_by(row) || memory.operator(row),
          memory.line(row),
        ),
      ),
    );
    const first = WHOLE.format(shown.length ? page * PAGE + 1 : 0);
    const last = WHOLE.format(page * PAGE + shown.length);
    table.caption.textContent =
      `Buffers, largest first: ${first} to ${last} of ${WHOLE.format(rows.length)}` +
      (rows.length < memory.count ? " found" : "");
    find("buffers-before").disabled = page === 0;
    find("buffers-after").disabled = (page + 1) * PAGE >= rows.length;
  }
}
