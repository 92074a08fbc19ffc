// Reads a file of any kind, which its content decides.

/** What a file holds: rows to place, notes, what its runtime needs, and how to save a plan in it.
 *
 *  Raises `Refusal`, whose text is one sentence without the name of the file.
 */
function readFile(bytes) {
  if (!bytes.length) refuse("the file is empty");
  if (String.fromCharCode(...bytes.subarray(4, 8)) === "TFL3") return readTflite(bytes);
  const start = bytes.subarray(0, 3).join() === "239,187,191" ? 3 : 0;
  const isText = !bytes.subarray(0, 4096).some((byte) => byte < 9 || (byte > 13 && byte < 32));
  if (!isText) {
    if (String.fromCharCode(...bytes.subarray(0, 4)) === "PK\u0003\u0004") {
      refuse(
        "this is an archive, perhaps of PyTorch, which memplan plan reads; this page does not",
      );
    }
    return readOnnx(bytes);
  }
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(start));
  } catch {
    refuse("the file is not UTF-8 text, and no model that this page knows");
  }
  return /^\s*[{[]/.test(text) ? readGraphJson(text) : readCsv(text);
}
