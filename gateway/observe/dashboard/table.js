/** Tables: a caption, columns with heads, rows of cells; wide ones scroll within themselves and by keyboard. */

import { h } from "./dom.js";

/** `columns` are {name, right}; a row is {key, cells}; the first cell of a row names it. */
export function table({ caption, columns, rows, empty, hidden = true }) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  const side = (column) => (column.right ? "right" : null);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: hidden ? "unseen" : null }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: side(column) }, column.name)))),
      h("tbody", {}, rows.map((row) => h("tr", { "data-key": row.key, class: row.class }, row.cells.map((cell, place) =>
        h(place ? "td" : "th", { class: side(columns[place]), scope: place ? null : "row" }, cell)))))));
}

/** Pairs of a name and a value. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** A figure with its name, for the head of a page. */
export function tile(name, value, detail = "") {
  return h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, h("strong", {}, value), detail && h("small", {}, detail)));
}

export const tiles = (...each) => h("dl", { class: "tiles" }, each);
