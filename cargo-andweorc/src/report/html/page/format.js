// Elements and numbers.

/** An element with attributes and children. Strings become text, never mark-up; what is null is left out. */
function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
function svg(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** Radio buttons side by side. */
function choice(name, legend, options, chosen, choose) {
  return el(
    "fieldset",
    { class: "choice" },
    el("legend", {}, legend),
    options.map(([value, text]) =>
      el("label", {}, el("input", { type: "radio", name, value, checked: value === chosen, onchange: () => choose(value) }), el("span", {}, text)),
    ),
  );
}

/** A number with a real minus sign, and without `-0`. */
function fixed(x, digits) {
  const text = x.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "\u2212");
}

/** `+24.8 %` */
function change(x, digits = 1) {
  const text = fixed(x, digits);
  return (Number(x.toFixed(digits)) > 0 ? "+" : "") + text + " %";
}

/** `[23.5, 26.2]` */
function interval(low, high) {
  if (low !== null && high !== null && high - low > 100) return "(not known)";
  return low === null || high === null ? "(one experiment)" : "[" + fixed(low, 1) + ", " + fixed(high, 1) + "]";
}

/** `25 %` of a fraction. */
function percent(fraction) {
  return fixed(fraction * 100, fraction > 0 && fraction < 0.01 ? 1 : 0) + " %";
}

/** A length of time in ms. */
function duration(ms) {
  if (ms >= 120000) return fixed(ms / 60000, 0) + " min";
  if (ms >= 1000) return fixed(ms / 1000, ms < 10000 ? 1 : 0) + " s";
  if (ms >= 1) return significant(ms) + " ms";
  return significant(ms * 1000) + " \u00b5s";
}

/** About so many seconds. */
function roughly(seconds) {
  return seconds >= 120 ? fixed(seconds / 60, 0) + " min" : fixed(seconds, 0) + " s";
}

function significant(x) {
  return fixed(x, x >= 100 ? 0 : x >= 10 ? 1 : 2);
}

/** A value of a metric: `614 /s` or `12.9 ms`. */
function quantity(metric, value) {
  if (value === null || value === undefined) return "";
  return metric === "throughput" ? significant(value) + " /s" : duration(value);
}
