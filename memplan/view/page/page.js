// The page: what is selected, and what follows from it.

const KEYS = {
  ArrowLeft: (view) => view.pan(-0.15, 0),
  ArrowRight: (view) => view.pan(0.15, 0),
  ArrowUp: (view) => view.pan(0, 0.15),
  ArrowDown: (view) => view.pan(0, -0.15),
  "+": (view) => view.zoom(1 / 1.5),
  "=": (view) => view.zoom(1 / 1.5),
  "-": (view) => view.zoom(1.5),
};
const REACH = 3; // pixels: so near to a thin box, the pointer is on it
// Bokeh calls a second click within 0.3 s a double one, wherever it goes, and a slow one a press.
const CLICKS = ["tap", "doubletap", "press"];
const OUTLINED = 400; // matches at most with a line around them; more would hide each other

class Page {
  constructor(memory, figures, load, by) {
    this.memory = memory;
    this.figures = figures;
    this.by = by;
    this.row = null;
    this.plan = 0; // the plan whose supports are shown
    this.x = null; // the moment
    this.found = null;
    this.waste = true;
    this.table = new Table(memory);
    this.view = new View(figures, memory, load, () => this.draw());
    for (const [at, figure] of figures.entries()) {
      const height = (bytes) => (bytes === null ? null : Number(bytes) / memory.unit.bytes);
      figure.setLine("capacity", height(memory.capacity));
      figure.setLine("bound", height(memory.bound));
      figure.space.on_event("mousemove", (event) => this.hover(at, event));
      figure.space.on_event("mouseleave", () => drawHover(memory, null, -1));
      for (const click of CLICKS) {
        figure.space.on_event(click, (event) => this.click(at, event));
        figure.strip.on_event(click, ({ x }) => this.moment(x));
      }
    }
  }

  get dark() {
    return document.documentElement.dataset.theme === "dark";
  }

  get shown() {
    return this.figures.filter((_, at) => !find(`plan-${at}`).hidden);
  }

  home() {
    this.view.home(this.shown.map(({ plan }) => plan));
  }

  /** Colour everything again: the theme, the meaning of colours, or the search has changed. */
  paint() {
    find("theme").setAttribute("aria-pressed", String(this.dark));
    for (const figure of this.figures) figure.paint();
    const matches = this.found?.matches;
    this.fills = fills(this.memory, this.by, this.dark, matches);
    drawLegend(find("legend"), this.memory, this.by, this.dark);
    this.mark();
    this.view.redraw();
  }

  draw() {
    drawHover(this.memory, null, -1); // the box under the pointer has moved
    const look = { fills: this.fills, waste: this.waste ? token("waste") : null };
    for (const figure of this.shown) figure.draw(look);
  }

  colour(by) {
    this.by = by;
    this.paint();
  }

  theme(name) {
    document.documentElement.dataset.theme = name;
    this.paint();
  }

  /** Select a buffer (null for none), as it lies in one of the plans. */
  select(row, at = this.plan) {
    this.row = row;
    this.plan = at;
    drawBuffer(this.memory, this.memory.plans[at], row);
    this.mark();
  }

  /** Select a place on the time axis (null for none). */
  moment(x, at = this.plan) {
    this.x = x === null ? null : Math.floor(x);
    drawMoment(this.memory, this.memory.plans[at], this.x);
    for (const figure of this.figures) figure.setMoment(this.x);
  }

  /** Select the peak of a plan: its time, and the buffer that reaches highest then. */
  peak(at) {
    const plan = this.memory.plans[at];
    const known = plan.peakSection >= 0;
    this.select(known ? plan.peakRow : null, at);
    this.moment(known ? plan.peakTime : null, at);
  }

  search(text) {
    this.found = text ? this.memory.search(text) : null;
    this.next = 0;
    find("search-status").textContent = this.found ? plural(this.found.count, "match") : "";
    this.table.keep(this.found?.matches ?? null);
    this.paint();
  }

  /** Go to the first buffer that the search found, or the next one; an exact name comes first. */
  jump() {
    if (!this.found?.count) return;
    const { matches } = this.found;
    const text = find("search").value;
    const exactly = this.next === 0 ? this.memory.name.indexOf(text) : -1;
    let row = exactly >= 0 ? exactly : matches.indexOf(1, this.next);
    if (row < 0) row = matches.indexOf(1);
    this.next = row + 1;
    this.go(row);
  }

  /** Select a buffer and bring it into sight. */
  go(row) {
    const { figures, shown } = this;
    const figure = shown.includes(figures[this.plan]) ? figures[this.plan] : shown[0] ?? figures[0];
    this.select(row, figures.indexOf(figure));
    this.view.reveal(this.memory.plans[this.plan], row);
  }

  clear() {
    find("search").value = "";
    drawHover(this.memory, null, -1);
    this.peak(this.memory.best);
    this.search("");
  }

  hover(at, { x, y, sx, sy }) {
    const figure = this.figures[at];
    const span = this.under(at, x, y);
    const box = find(`memory-${at}`).getBoundingClientRect();
    drawHover(this.memory, figure.plan, span, { x: box.left + sx, y: box.top + sy });
  }

  click(at, { x, y }) {
    const span = this.under(at, x, y);
    this.moment(x, at);
    this.select(span < 0 ? null : this.memory.row[span], at);
  }

  /** The span under a pointer. */
  under(at, x, y) {
    const { x0, x1, y0, y1 } = this.view.ranges;
    const { width, height } = this.figures[at].pixels;
    const reach = [((x1 - x0) / width) * REACH, ((y1 - y0) / height) * REACH];
    return this.memory.plans[at].find(x, y, ...reach);
  }

  /** Draw lines around the matches, and around the selected buffer and its neighbours. */
  mark() {
    const [ink, below, above] = ["ink", "below", "above"].map(token);
    const found = this.found && this.found.count <= OUTLINED ? this.found.matches : [];
    for (const figure of this.figures) {
      const marks = [];
      found.forEach((match, row) => match && marks.push([row, { colour: ink, width: 1.5 }]));
      if (this.row !== null) {
        const { plan } = figure;
        if (plan.supports) {
          for (const row of plan.below(this.row)) marks.push([row, { colour: below, width: 2.5 }]);
          for (const row of plan.above(this.row)) marks.push([row, { colour: above, width: 2.5 }]);
        }
        marks.push([this.row, { colour: ink, width: 3 }]);
      }
      figure.mark(marks);
    }
  }

  /** What `window.memplan.view()` returns. */
  describe() {
    const { x0, x1, y0, y1 } = this.view.ranges;
    const { memory } = this;
    const [origin, unit] = [Number(memory.origin), memory.unit.bytes];
    return {
      ...{ start: x0 + origin, end: x1 + origin, lower: y0 * unit, upper: y1 * unit },
      selected: this.row,
      plan: memory.plans[this.plan].name,
      moment: this.x === null ? null : this.x + origin,
      matches: this.found ? this.found.count : null,
      colour: this.by,
      theme: document.documentElement.dataset.theme,
    };
  }
}

/** Connect the controls and the keyboard. */
function wire(page) {
  const search = find("search");
  let typing;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => page.search(search.value.trim()), 120);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    clearTimeout(typing);
    if (!page.found) page.search(search.value.trim());
    page.jump();
  });
  find("colour").addEventListener("change", (event) => page.colour(event.target.value));
  find("theme").addEventListener("click", () => page.theme(page.dark ? "light" : "dark"));
  find("waste").addEventListener("change", (event) => {
    page.waste = event.target.checked;
    page.view.redraw();
  });
  find("home").addEventListener("click", () => page.home());
  find("zoom-in").addEventListener("click", () => KEYS["+"](page.view));
  find("zoom-out").addEventListener("click", () => KEYS["-"](page.view));
  find("moment-all").addEventListener("click", () =>
    drawMoment(page.memory, page.memory.plans[page.plan], page.x, true),
  );
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) =>
    page.theme(event.matches ? "dark" : "light"),
  );
  const chosen = (event) => {
    const { row, peak } = event.target.closest("[data-row], [data-peak]")?.dataset ?? {};
    if (row === undefined && peak === undefined) return;
    event.preventDefault();
    if (peak === undefined) page.go(Number(row));
    else page.peak(Number(peak));
  };
  document.addEventListener("click", chosen);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") page.clear();
    if (event.target.matches("input[type=search], select")) return;
    if (event.key === "Enter") chosen(event);
    else if (event.key === "/") search.focus();
    else if (event.key === "0") page.home();
    else if (event.target.matches("tr") && moveFocus(event)) return;
    else if (KEYS[event.key]) KEYS[event.key](page.view);
    else return;
    if (event.key !== "Enter") event.preventDefault();
  });
}

/** Move the focus from row to row of a table with the arrows. */
function moveFocus(event) {
  const step = { ArrowUp: "previousElementSibling", ArrowDown: "nextElementSibling" }[event.key];
  if (!step) return false;
  event.target[step]?.focus();
  event.preventDefault();
  return true;
}

/** Make a place for every plan; return Bokeh's roots by the places that they go to. */
function placePlans(memory, document_) {
  const roots = {};
  const choices = find("plans");
  const several = memory.plans.length > 1;
  choices.hidden = !several;
  for (const [at, plan] of memory.plans.entries()) {
    const place = find("plan").content.cloneNode(true).firstElementChild;
    place.id = `plan-${at}`;
    const peak = `peak ${exact(plan.peak)}`;
    const caption = place.querySelector("figcaption");
    if (plan.peakSection >= 0) {
      const when = ` at time ${WHOLE.format(memory.time(plan.peakTime))}`;
      caption.append(make("a", { href: "#moment", "data-peak": at }, peak + when));
    } else {
      caption.append(peak);
    }
    // With one plan, the verdict is at the top of the page.
    if (several && !plan.fault) caption.append(", ", make("span", { class: plan.grade }, plan.verdict));
    place.querySelector("h2").textContent = plan.name;
    place.querySelector(".fault").textContent = plan.fault && `Invalid: ${plan.fault}`;
    const about = `plan ${plan.name}: ${plural(memory.count, "buffer")}, ${peak}, ${plan.verdict}`;
    const texts = {
      memory: `Address over time of ${about}. The table below lists the buffers.`,
      load: `Load over time: at most ${exact(memory.loadPeak)}, lower bound ${exact(memory.bound)}.`,
    };
    for (const [index, which] of ["memory", "load"].entries()) {
      const figure = place.querySelector(`.${which}`);
      figure.id = `${which}-${at}`;
      figure.setAttribute("aria-label", texts[which]);
      roots[document_.roots[2 * at + index].id] = figure.id;
    }
    find("figures").append(place);
    const box = make("input", { type: "checkbox", checked: "" });
    box.addEventListener("change", () => {
      find(`plan-${at}`).hidden = !box.checked;
      window.memplan.home();
    });
    choices.append(make("label", {}, box, plan.name));
  }
  return roots;
}

function factsOfProblem(memory) {
  const { capacity, bound, loadPeak } = memory;
  return [
    plural(memory.count, "buffer"),
    `${human(memory.naive)} without sharing`,
    bound === loadPeak ? "" : `greatest load ${human(loadPeak)}`,
    `lower bound ${human(bound)}`,
    capacity === null ? "" : `capacity ${human(capacity)}`,
  ].filter((each) => each);
}

/** The share of memory that each plan does not use below its skyline. */
function wordsOnUnused({ plans }) {
  const shares = plans
    .filter(({ waste }) => waste)
    .map(({ name, waste }) => (plans.length > 1 ? `${name} ` : "") + percent(waste.share, 1));
  return "unused below the skyline" + (shares.length ? `: ${shares.join(", ")}` : "");
}

async function start() {
  const read = (id) => JSON.parse(find(id).textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const data = read("memplan-data");
  const memory = new Memory(data);
  const json = read("memplan-figures");
  const roots = placePlans(memory, json);
  const item = { docid: "memplan", roots, root_ids: Object.keys(roots) };
  await Bokeh.embed.embed_items({ memplan: json }, [item]);
  const bokeh = Bokeh.documents[Bokeh.documents.length - 1];
  const figures = memory.plans.map((plan, at) => new PlanFigure(bokeh, memory, plan, at));
  const by = memory.classes[data.colour] ? data.colour : "size";
  const page = new Page(memory, figures, bokeh.get_model_by_name("load-range"), by);
  find("colour").value = by;
  for (const option of find("colour").options) {
    option.disabled = option.value !== "size" && !memory.classes[option.value];
  }
  find("facts").textContent = factsOfProblem(memory).join(" · ");
  find("capacity-key").hidden = memory.capacity === null;
  find("unused").textContent = wordsOnUnused(memory);
  wire(page);
  while (!(figures[0].pixels.width > 0)) await new Promise((resolve) => setTimeout(resolve, 5));
  page.home();
  const above = Number(memory.capacity) > page.view.address.end * memory.unit.bytes;
  find("capacity-key").lastElementChild.textContent = above
    ? "capacity, above the figure"
    : "capacity";
  page.clear(); // which selects the peak
  window.memplan = {
    select: (row) => page.go(row),
    moment: (time) => page.moment(Number(BigInt(time) - memory.origin)),
    search: (text) => {
      find("search").value = text;
      page.search(text);
    },
    home: () => page.home(),
    view: () => page.describe(),
  };
  document.documentElement.dataset.ready = "true";
}

start();
