// The page: a file is dropped, read, planned and shown.

const SECONDS = 5; // for one plan; a search that needs more gives its best plan and bound
const REACH = 3; // pixels: so near to a thin box, the pointer is on it

class Playground {
  constructor(core) {
    this.core = core;
    this.shown = null;
    this.chosen = null; // the moment, on the time axis
  }

  /** Show a file, or say in one sentence why not. */
  show(name, bytes) {
    this.shown = null;
    document.documentElement.dataset.shown = "";
    find("title").textContent = name;
    try {
      const begun = performance.now();
      const model = readFile(bytes);
      const plan = this.core.solve(model.rows, SECONDS);
      const took = performance.now() - begun;
      if (plan.status === "infeasible" || plan.status === "unknown") {
        refuse("there is no plan: its pins contradict each other");
      }
      this._fill(name, model, plan, took);
      this.said = { ...plan, offsets: undefined, rows: model.rows.length };
    } catch (error) {
      this._fail(error);
    }
    document.documentElement.dataset.shown = name;
  }

  _fail(error) {
    const isOurs = error instanceof Refusal;
    const text = isOurs
      ? error.message
      : `this page cannot plan the file (${error.message}): use memplan plan`;
    if (!isOurs) console.error(error);
    this.said = { error: text };
    this._uncover(false);
    find("verdict").className = "bad";
    find("verdict").textContent = `${text[0].toUpperCase()}${text.slice(1)}.`;
    find("facts").textContent = "";
    find("notes").hidden = true;
    find("save-model").hidden = true;
  }

  /** Show what there is of a plan, or where to drop a file. */
  _uncover(isThere) {
    find("drop").hidden = isThere;
    for (const each of document.querySelectorAll(".stage, aside, #colour-label, #save-plan"))
      each.hidden = !isThere;
  }

  _fill(name, model, plan, took) {
    const memory = new Memory(describePlan(model, plan));
    const [shown] = memory.plans;
    const greedy = model.greedy ?? {
      name: "largest first, lowest address",
      peak: placeBySize(model.rows),
    };
    this.shown = { name, model, plan, memory, figure: shown };
    find("verdict").className = shown.grade;
    find("verdict").textContent = `Peak ${human(plan.peak)}, ${shown.verdict}`;
    find("facts").textContent = [
      plural(model.rows.length, "buffer"),
      `${human(memory.naive)} without sharing`,
      `lower bound ${human(plan.bound)}`,
      `read and planned in ${took < 10 ? took.toFixed(1) : Math.round(took)}\u00a0ms`,
    ].join(" · ");
    drawPlanners(memory, plan, greedy);
    drawNotes(model.notes);
    this._uncover(true);
    find("save-model").hidden = model.save === null;
    const by = ["operator", "kind"].find((each) => memory.classes[each]) ?? "size";
    find("colour").value = by;
    for (const option of find("colour").options) {
      option.disabled = option.value !== "size" && !memory.classes[option.value];
    }
    this.moment(null);
  }

  /** Choose a moment; null is that of the peak. */
  moment(x) {
    const { memory, figure } = this.shown;
    this.chosen = x ?? (figure.peakSection < 0 ? null : figure.peakTime);
    drawMoment(memory, figure, this.chosen);
    const isPeak = this.chosen !== null && figure.isPeak(this.chosen);
    find("blame").textContent = isPeak ? findBlame(memory.live(this.chosen)) : "";
    this.draw();
  }

  draw() {
    const dark = document.documentElement.dataset.theme === "dark";
    find("theme").setAttribute("aria-pressed", String(dark));
    if (!this.shown) return;
    const { memory, figure } = this.shown;
    const by = find("colour").value;
    drawLegend(find("legend"), memory, by, dark);
    const { loadTime } = memory;
    const [first, last] = [loadTime[0] ?? 0, loadTime.at(-1) ?? 1];
    const margin = 0.01 * (last - first);
    const top = Math.max(Number(figure.peak), 1) / memory.unit.bytes;
    const view = { x0: first - margin, x1: last + margin, y0: 0, y1: top * 1.08 };
    this.canvas = new Canvas(find("memory"), view);
    drawMemory(this.canvas, memory, figure, fills(memory, by, dark, null), this.chosen);
    drawLoads(new Canvas(find("load"), view), memory, figure, this.chosen);
    this._placeLabel();
  }

  _placeLabel() {
    const { memory, figure } = this.shown;
    const label = document.querySelector(".peak-label");
    label.hidden = figure.peakSection < 0;
    if (label.hidden) return;
    const when = WHOLE.format(memory.time(figure.peakTime));
    label.textContent = `peak ${human(figure.peak)} at time ${when}`;
    const x = this.canvas.x(figure.peakTime);
    const isRight = x > FRAME.left + this.canvas.width / 2;
    label.style.left = isRight ? "auto" : `${x + 4}px`;
    label.style.right = isRight ? `calc(100% - ${x - 4}px)` : "auto";
  }

  hover(event) {
    if (!this.shown) return;
    const { memory, figure } = this.shown;
    const { x, y } = this.canvas.placeOf(event);
    const span = figure.find(x, y, REACH / this.canvas.perX, REACH / this.canvas.perY);
    drawHover(memory, figure, span, { x: event.clientX, y: event.clientY });
  }

  save(what) {
    const { name, model, plan } = this.shown;
    const stem = name.replace(/\.[^.]*$/, "");
    if (what === "plan") return download(`${stem}.plan.csv`, formatPlan(model.rows, plan.offsets));
    try {
      return download(`${stem}.planned.tflite`, model.save([...plan.offsets]));
    } catch (error) {
      return this._fail(error);
    }
  }
}

/** First fit of buffers by size, the largest first: what many runtimes do. */
function placeBySize(rows) {
  return firstFit(rows.slice().sort((a, b) => b.size - a.size));
}

function drawPlanners(memory, plan, greedy) {
  const more = (peak) => {
    if (peak === plan.peak) return "the same";
    if (peak >= 2 * plan.peak) return `${WHOLE.format(Math.floor(peak / plan.peak))} times`;
    return `${peak < plan.peak ? "" : "+"}${percent(peak - plan.peak, plan.peak)}`;
  };
  const lines = [
    ["memplan", human(plan.peak), ""],
    [greedy.name, human(greedy.peak), more(greedy.peak)],
    ["without sharing", human(memory.naive), more(Number(memory.naive))],
  ];
  const row = ([name, ...cells]) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, name),
      ...cells.map((text) => make("td", {}, text)),
    );
  find("planners")
    .querySelector("tbody")
    .replaceChildren(...lines.map(row));
}

function drawNotes(notes) {
  find("notes").hidden = !notes.length;
  find("notes").open = true;
  find("notes").querySelector("summary").textContent =
    `${plural(notes.length, "note")} about how the file was read`;
  find("notes")
    .querySelector("ul")
    .replaceChildren(...notes.map((note) => make("li", {}, note)));
}

function download(name, content) {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([content])) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  return content;
}

async function open(page, file) {
  if (file) page.show(file.name, new Uint8Array(await file.arrayBuffer()));
}

function wire(page) {
  const root = document.documentElement;
  find("file").addEventListener("change", ({ target }) => open(page, target.files[0]));
  addEventListener("dragover", (event) => {
    event.preventDefault();
    root.classList.add("over");
  });
  addEventListener("dragleave", () => root.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    root.classList.remove("over");
    open(page, event.dataTransfer.files[0]);
  });
  find("colour").addEventListener("change", () => page.draw());
  find("save-plan").addEventListener("click", () => page.save("plan"));
  find("save-model").addEventListener("click", () => page.save("model"));
  find("theme").addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    page.draw();
  });
  for (const id of ["memory", "load"]) {
    find(id).addEventListener("click", (event) => page.moment(page.canvas.placeOf(event).x));
  }
  find("memory").addEventListener("mousemove", (event) => page.hover(event));
  find("memory").addEventListener("mouseleave", () => drawHover(null, null, -1));
  find("moment-all").addEventListener("click", () =>
    drawMoment(page.shown.memory, page.shown.figure, page.chosen, true),
  );
  addEventListener("keydown", ({ key }) => key === "Escape" && page.shown && page.moment(null));
  addEventListener("resize", () => page.draw());
}

async function start() {
  const root = document.documentElement;
  root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  find("verdict").previousElementSibling.id = "title";
  const page = new Playground(await Core.start(bytesOf(CORE)));
  wire(page);
  page.draw();
  window.memplan = {
    show: (name, data) => {
      page.show(name, bytesOf(data));
      return page.said;
    },
    model: () => page.shown.model.save([...page.shown.plan.offsets]),
    csv: () => formatPlan(page.shown.model.rows, page.shown.plan.offsets),
  };
  root.dataset.ready = "true";
}

start();
