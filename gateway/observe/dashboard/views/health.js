/** The state of what the gateway depends on: upstreams, store, records and summariser. */

import { get } from "../api.js";
import { h } from "../dom.js";
import { bytes, plural, seconds, whole } from "../format.js";
import { facts, table } from "../table.js";

export const title = "Health";

export async function load() {
  return get("status");
}

export function draw(status) {
  return [
    h("h1", { tabindex: "-1" }, title),
    facts([
      ["State", state(status.state === "ready", status.state)],
      ["Mode", status.mode],
      ["Version", status.version],
      ["Running for", uptime(status.uptime_s)],
      ["Process", String(status.process)],
      ["Requests open", whole(status.requests_open)],
      ["Bodies held", bytes(status.bytes_held)],
      ["Waiting to be folded", whole(status.queue)],
    ]),
    section("Upstreams", upstreams(status.upstreams)),
    h("div", { class: "cards" }, section("Store", store(status.store)), section("Records", kept(status.records)), section("Summariser", summariser(status.summariser))),
  ];
}

const section = (name, ...content) => h("section", { class: "card" }, h("h2", {}, name), content);
const state = (good, word) => h("span", { class: `state ${good ? "good" : "bad"}` }, word);

/** A long time in its largest fitting unit. */
function uptime(value) {
  const [unit, size] = [["day", 86400], ["hour", 3600], ["minute", 60]].find(([, each]) => value >= 2 * each) ?? [];
  return unit ? plural(Math.floor(value / size), unit) : seconds(value);
}

function upstreams(found) {
  return table({
    caption: "Upstreams",
    columns: [{ name: "Upstream" }, { name: "Provider" }, { name: "State" }],
    rows: found.map((upstream) => ({
      key: upstream.name,
      cells: [
        h("span", {}, upstream.name, upstream.default ? h("small", {}, "default") : null),
        upstream.provider,
        upstream.resting ? state(false, "resting after a failure") : state(true, "in use"),
      ],
    })),
    empty: "No upstream is configured.",
  });
}

function store(found) {
  const resting = found.resting.join(", ");
  return [
    facts([["Kind", found.kind], ["State", resting ? state(false, `left alone: ${resting}`) : state(true, "working")]]),
    h("p", { class: "hint" }, resting
      ? "Its last calls failed. Requests go on without it: what is learned and summaries are not shared, nothing else is lost. It is tried again within thirty seconds."
      : found.kind === "memory" ? "What is learned is kept until the process ends." : "What is learned is kept when the process ends."),
  ];
}

function kept(found) {
  return facts([
    ["Kept for", found.kept_s ? uptime(found.kept_s) : "as long as the process runs, the newest alone"],
    ["State", found.resting ? state(false, "left alone after failures") : state(true, "working")],
    ["Waiting to be written", whole(found.waiting)],
    ["Text of messages", found.text ? "kept" : "not kept"],
  ]);
}

function summariser(found) {
  if (!found.model) return h("p", { class: "empty" }, "Off: no model is named in fold.summary.model. Digests stand in the place of folded turns.");
  return [
    facts([["Model", found.model], ["Upstream", found.upstream || "the model's own"]]),
    table({
      caption: "Summaries by outcome",
      columns: [{ name: "Outcome" }, { name: "Summaries", right: true }],
      rows: Object.entries(found.outcomes).map(([name, count]) => ({ key: name, cells: [name.replaceAll("_", " "), whole(count)] })),
      empty: "No summary was wanted yet.",
    }),
  ];
}
