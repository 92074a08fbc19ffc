// Problems as CSV, in all dialects that `memplan.problem.formats.minimalloc_csv` reads.

const COLUMNS = {
  id: "id",
  buffer: "id",
  buffer_id: "id",
  lower: "start",
  start: "start",
  begin: "start",
  upper: "end",
  end: "end",
  size: "size",
  alignment: "alignment",
  hint: "hint",
  gaps: "gaps",
  offset: "pin",
};
const GAP = /^(-?[0-9]{1,30})-(-?[0-9]{1,30})(?:@([0-9]{1,30}):([0-9]{1,30}))?$/;

/** The fields of every record, with the number of its line. */
function splitRecords(text) {
  const found = [];
  let separator = "";
  let opened = "";
  let first = 0;
  text.split(/\r\n|\n|\r/).forEach((line, number) => {
    const isBlank = !line.trim();
    if (!separator && line[0] !== "#" && !isBlank) {
      separator =
        (!line.includes('"') && [",", ";", "\t"].find((each) => line.includes(each))) || ",";
    }
    if (!opened && line.startsWith("# memplan plan ")) {
      refuse("this is a plan, as its last line says, not a problem");
    }
    if (!opened && (line[0] === "#" || isBlank)) return;
    if (!opened) first = number + 1;
    opened += opened ? `\n${line}` : line;
    if ((opened.split('"').length - 1) % 2) return;
    found.push([first, splitFields(opened, separator, first)]);
    opened = "";
  });
  if (opened) refuse(`line ${first}: a quoted field is not closed`);
  return found;
}

function splitFields(record, separator, line) {
  const blanks = separator === "\t" ? / /g : /[ \t]/g;
  const trim = (text) => text.replace(new RegExp(`^${blanks.source}+|${blanks.source}+$`, "g"), "");
  if (!record.includes('"')) return record.split(separator).map(trim);
  const fields = [];
  const field = new RegExp(
    `${blanks.source}*(?:"([^"]*(?:""[^"]*)*)"${blanks.source}*|([^"${separator}\\r\\n]*))(${separator}|$)`,
    "y",
  );
  for (let end = separator; end;) {
    const match = field.exec(record);
    if (!match)
      refuse(`line ${line}: field ${fields.length + 1} has text before or after its quotes`);
    fields.push(match[1] === undefined ? trim(match[2]) : match[1].replaceAll('""', '"'));
    end = match[3];
  }
  return fields;
}

/** What the columns mean: by field the number of its column; and whether ends are inclusive. */
function readHeader(line, names) {
  const at = {};
  if (!names.some((name) => Object.hasOwn(COLUMNS, name))) {
    refuse("the file is no model or graph that this page reads, and no table of buffers");
  }
  names.forEach((name, column) => {
    const field = Object.hasOwn(COLUMNS, name) ? COLUMNS[name] : undefined;
    const known = Object.keys(COLUMNS).join(", ");
    if (!field) refuse(`line ${line}: unknown column ${quoted(name)}; known are ${known}`);
    if (field in at)
      refuse(`line ${line}: columns ${quoted(names[at[field]])} and ${quoted(name)} mean the same`);
    at[field] = column;
  });
  for (const field of ["id", "start", "end", "size"]) {
    const options = Object.keys(COLUMNS).filter((name) => COLUMNS[name] === field);
    if (!(field in at)) refuse(`line ${line}: column ${options.join(" or ")} is missing`);
  }
  return { at, inclusive: names[at.end] === "end" };
}

function readCsv(text) {
  const records = splitRecords(text);
  if (!records.length) refuse("the file has no header and no rows");
  const [[headerLine, names], ...lines] = records;
  const { at, inclusive } = readHeader(headerLine, names);
  const ids = new Set();
  const rows = lines.map(([line, fields]) => {
    if (fields.length > names.length) {
      refuse(
        `line ${line}: the row has ${fields.length} fields, but the header has ${names.length} columns`,
      );
    }
    if (fields.length < names.length) {
      const missing = names[fields.length];
      refuse(
        `line ${line}: the row has ${fields.length} of ${names.length} fields; ${missing} is missing`,
      );
    }
    const where = `line ${line}: buffer ${quoted(fields[at.id])}`;
    const whole = (field, otherwise) => {
      if (!(field in at)) return otherwise;
      const text = fields[at[field]] || (field === "hint" || field === "pin" ? "-1" : "");
      const what = `${where}: ${names[at[field]]} is ${quoted(text)}`;
      if (!/^-?[0-9]+$/.test(text)) refuse(`${what}; it must be a whole number`);
      if (Math.abs(Number(text)) > LARGEST)
        refuse(`${what}; this page counts up to 2^53, memplan plan up to 2^62`);
      return Number(text);
    };
    const row = {
      id: fields[at.id],
      start: whole("start"),
      end: whole("end") + (inclusive ? 1 : 0),
      size: whole("size"),
      alignment: whole("alignment", 1),
      pin: whole("pin", -1),
      hint: whole("hint", -1),
      kind: "",
      tensors: [],
      madeBy: "",
      operator: "",
      usedBy: [],
    };
    if (!row.id || ids.has(row.id)) {
      refuse(`${where}: ${row.id ? "another buffer has this id" : "every buffer needs an id"}`);
    }
    ids.add(row.id);
    if (row.end <= row.start) {
      const order = inclusive ? "at least" : "more than";
      refuse(
        `${where}: ${names[at.end]} is ${fields[at.end]}; it must be ${order} ${names[at.start]} (${fields[at.start]})`,
      );
    }
    row.gaps = "gaps" in at ? readGaps(fields[at.gaps], inclusive, row, where) : [];
    return row;
  });
  return { source: "csv", rows, tensors: rows.length, notes: [], save: null };
}

/** The gaps of a buffer, cut to its lifetime: start, end, and the window that it keeps. */
function readGaps(cell, inclusive, row, where) {
  const gaps = [];
  for (const text of cell.split(/\s+/).filter((each) => each)) {
    const match = GAP.exec(text);
    if (!match)
      refuse(
        `${where}: gaps has ${quoted(text)}; a gap is start-end or start-end@lower:upper, as in 3-7@0:128`,
      );
    let [start, end, lower, upper] = match
      .slice(1)
      .map((each) => (each === undefined ? 0 : Number(each)));
    end += inclusive ? 1 : 0;
    if (start < end) {
      [start, end] = [Math.max(start, row.start), Math.min(end, row.end)];
      if (start >= end) continue;
    }
    if (Math.max(Math.abs(start), Math.abs(end), upper) > LARGEST)
      refuse(`${where}: a gap is beyond 2^53`);
    gaps.push([start, end, lower, upper]);
  }
  return gaps.sort((a, b) => a[0] - b[0]);
}
