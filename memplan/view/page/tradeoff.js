// The page of `memplan tradeoff`: its figure, in the colours of the theme.

/** Colour the figure as the style sheet does. */
function paintTradeoff(chart) {
  const [ink, quiet, grid] = ["ink", "quiet", "grid"].map(token);
  paintFrame(chart, quiet, grid);
  for (const { name, glyph } of chart.renderers) {
    if (name === "impossible") glyph.setv({ fill_color: quiet, fill_alpha: 0.22 });
    if (name === "bound") glyph.line_color = ink;
    if (name === "found") glyph.line_color = quiet;
  }
}

async function startTradeoff() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  root.dataset.theme = dark.matches ? "dark" : "light";
  const json = JSON.parse(document.getElementById("memplan-figures").textContent);
  const [{ id }] = json.roots;
  const item = {
    docid: "memplan",
    roots: { [id]: document.getElementById("chart") },
    root_ids: [id],
  };
  await Bokeh.embed.embed_items({ memplan: json }, [item]);
  const drawn = Bokeh.documents[Bokeh.documents.length - 1];
  const paint = () => paintTradeoff(drawn.get_model_by_name("chart"));
  paint();
  dark.addEventListener("change", (event) => {
    root.dataset.theme = event.matches ? "dark" : "light";
    paint();
  });
  root.dataset.ready = "true";
}

startTradeoff();
