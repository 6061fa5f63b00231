// A long list of which only the rows in view are made.

/** Rows made above and below what is in view. */
const BEYOND = 4;

/**
 * Fills `body`, which `box` scrolls, with a row for each of `items` as it comes into view. All rows are of one height, that of the first.
 * Returns a function that brings a row into view and focuses its link.
 */
function virtualList(box, body, items, makeRow) {
  const rows = new Map();
  const make = (i) => {
    const row = makeRow(items[i], i);
    row.style.top = i * height + "px";
    rows.set(i, row);
    return row;
  };
  let height = 0;
  if (items.length) {
    body.append(make(0));
    height = body.firstChild.offsetHeight;
  }

  function render(all = false) {
    body.style.height = items.length * height + "px";
    const first = all ? 0 : Math.max(0, Math.floor(box.scrollTop / height) - BEYOND);
    const end = all ? items.length : Math.min(items.length, Math.ceil((box.scrollTop + box.clientHeight) / height) + BEYOND);
    for (const [i, row] of rows) {
      // A row that has the focus would lose it.
      if ((i < first || i >= end) && !row.contains(document.activeElement)) {
        row.remove();
        rows.delete(i);
      }
    }
    // In their order, which is that of the Tab key.
    const below = [...rows.keys()].sort((a, b) => a - b);
    for (let i = first, next = 0; i < end; i++) {
      if (rows.has(i)) continue;
      while (next < below.length && below[next] < i) next++;
      body.insertBefore(make(i), next < below.length ? rows.get(below[next]) : null);
    }
  }

  function measureAnew() {
    if (!items.length) return;
    const now = rows.values().next().value.offsetHeight;
    if (now !== height) {
      height = now;
      for (const [i, row] of rows) row.style.top = i * height + "px";
    }
    render();
  }

  box.addEventListener("scroll", () => render(), { passive: true });
  new ResizeObserver(measureAnew).observe(box);
  render();
  return {
    all: () => render(true),
    focus(i) {
      if (i < 0 || i >= items.length) return;
      const at = i * height;
      if (at < box.scrollTop) box.scrollTop = at;
      if (at + height > box.scrollTop + box.clientHeight) box.scrollTop = at + height - box.clientHeight;
      render();
      rows.get(i).querySelector("a").focus();
    },
  };
}
