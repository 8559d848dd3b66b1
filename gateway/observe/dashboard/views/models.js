/** Each model's fullness: how its prompts are distributed against its window. */

import { distribution } from "../charts.js";
import { h } from "../dom.js";
import { percent, plural, whole } from "../format.js";
import { address } from "../route.js";
import { facts, table } from "../table.js";
import { counting } from "./requests.js";

export const title = "Models";
export const filtered = true;

export async function load({ route, records }) {
  return records.count(route);
}

export function draw(sums, { route }) {
  if (!sums) return [h("h1", { tabindex: "-1" }, title), counting()];
  const { fullness: models, classes } = sums;
  if (!models.length) return [h("h1", { tabindex: "-1" }, title), h("p", { class: "empty" }, "No request with a known window matches.")];
  const intro = "How full each model's window was with the prompts that clients sent. What stands right of the line would not have fitted as it came.";
  return [h("h1", { tabindex: "-1" }, title), h("p", { class: "hint" }, intro), h("div", { class: "cards" }, models.map((model) => card(model, classes, route)))];
}

const bound = (classes, index) => (classes[index] === null ? `over ${percent(classes[index - 1])}` : `to ${percent(classes[index])}`);

/** The window of a model; it may have changed, by configuration or by what was learned. */
const windows = ({ window, smallest, largest }) => `window of ${whole(window)} tokens${smallest < largest ? `, in this period ${whole(smallest)} to ${whole(largest)}` : ""}`;

function card(model, classes, route) {
  const label = `Fullness of ${model.model}: half of the requests took ${percent(model.median)} of the window or less, the fullest ${percent(model.most)}; ${plural(model.over, "request")} did not fit.`;
  return h("section", { class: "card", "data-key": `${model.upstream} ${model.model}` },
    h("h2", {}, h("a", { href: address("requests", { model: model.model }, route) }, model.model)),
    h("p", { class: "hint" }, `${model.upstream} · ${windows(model)} (${model.entry})`),
    distribution({ label, bounds: classes.map((bound) => bound ?? Infinity), counts: model.counts, limit: 1 }),
    h("p", { class: "scale", "aria-hidden": "true" }, h("span", {}, "empty"), h("span", {}, "full"), h("span", {}, "over 200 %")),
    facts([
      ["Requests", whole(model.requests)],
      ["Median", percent(model.median)],
      ["95 of 100 up to", percent(model.p95)],
      ["Fullest", percent(model.most)],
      ["Did not fit", whole(model.over)],
      ["Folded", whole(model.folded)],
    ]),
    h("details", {}, h("summary", {}, "Figures"), table({
      caption: `Requests of ${model.model} by fullness`,
      columns: [{ name: "Of the window" }, { name: "Requests", right: true }],
      rows: model.counts.map((count, index) => ({ key: String(index), cells: [bound(classes, index), whole(count)] })),
    })));
}
