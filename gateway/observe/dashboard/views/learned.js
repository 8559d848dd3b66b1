/** What was learned of upstreams: windows and ratios with their evidence, and buttons to forget them. */

import { get } from "../api.js";
import { h } from "../dom.js";
import { brief, text, whole } from "../format.js";
import { table } from "../table.js";

export const title = "Learned";

export async function load() {
  return (await get("learned")).facts;
}

export function draw(found) {
  const intro = "Upstreams teach: their refusals state windows, their bills tell how they count. Each fact ends by itself; one that is wrong can be forgotten at once, in all processes that share the store.";
  return [
    h("h1", { tabindex: "-1" }, title),
    h("p", { class: "hint" }, intro),
    table({
      caption: "Learned facts",
      columns: [
        { name: "Model" }, { name: "Fact" }, { name: "Value", right: true }, { name: "Kind" }, { name: "Holds for" }, { name: "Evidence" },
        { name: "Since" }, { name: "Until" }, { name: "Forget" },
      ],
      rows: found.map((fact, place) => row(fact, place)),
      empty: "Nothing was learned yet: no upstream refused a request as too long, and none has billed one that was counted.",
    }),
    found.length
      ? h("p", { class: "buttons" }, button("Forget all that was learned", { learned: true }, "All windows, ratios and sizes that were learned of all models are deleted, everywhere. Summaries stay. They are learned again from the next refusals and bills."))
      : null,
  ];
}

function row(fact, place) {
  const { upstream, model } = fact;
  const question = `All that was learned of ${model} at ${upstream} is deleted, everywhere. It is learned again from the next refusals and bills.`;
  return {
    key: `${upstream} ${model} ${fact.what} ${place}`,
    cells: [
      h("span", {}, h("span", { class: "clip", title: model }, model), h("small", {}, upstream)),
      fact.what,
      fact.what === "ratio" ? fact.value.toFixed(3) : whole(fact.value),
      h("span", { class: `kind kind-${fact.kind}` }, fact.kind),
      h("span", { title: fact.caller ?? "" }, text(fact.holds), fact.caller ? h("small", {}, brief(fact.caller)) : null),
      h("span", { class: "evidence" }, text(fact.evidence)),
      moment(fact.since),
      moment(fact.until),
      button("Forget", { upstream, model }, question, `Forget what was learned of ${model} at ${upstream}`),
    ],
  };
}

/** A moment in ISO form, short, in the reader's own time. */
const moment = (iso) => h("time", { datetime: iso }, new Date(iso).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }));

function button(name, order, question, label = name) {
  return h("button", {
    type: "button", class: "danger", "data-action": "forget", "data-order": JSON.stringify(order), "data-question": question,
    "data-label": label, "aria-label": label === name ? null : label,
  }, name);
}
