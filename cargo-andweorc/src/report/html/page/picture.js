// Pictures to keep: an SVG that needs nothing of the page.

/** The properties that the style of the page gives to what is drawn. */
const DRAWN = ["fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];

/** A button that saves what `draw` makes, an SVG with its size in pixels, under a name. */
function saveButton(what, name, draw) {
  return el("button", { type: "button", class: "quiet", "aria-label": "Save " + what + " as a picture (SVG)", onclick: () => save(name, standalone(draw())) }, "Save SVG");
}

/** The text of an SVG in which the style is written out. */
function standalone(drawing) {
  const host = el("div", { class: "offscreen", "aria-hidden": "true" }, drawing);
  document.body.append(host);
  for (const node of drawing.querySelectorAll("text, line, circle, rect, polygon, polyline, path")) {
    const style = getComputedStyle(node);
    for (const name of DRAWN) node.setAttribute(name, style.getPropertyValue(name));
  }
  host.remove();
  // Not sooner: what is inside takes its colour from the class around it.
  drawing.querySelectorAll("[class]").forEach((node) => node.removeAttribute("class"));
  return new XMLSerializer().serializeToString(drawing);
}

/** Hands the browser a file. */
function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  el("a", { href: url, download: name.replace(/[^\p{L}\p{N}._-]+/gu, "-") + ".svg" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** A drawing of this size, on paper and with a title. */
function sheet(width, height, title, ...children) {
  return svg(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title },
    svg("title", {}, title),
    svg("rect", { class: "paper", width, height }),
    svg("text", { class: "title", x: 14, y: 24 }, title),
    children,
  );
}
