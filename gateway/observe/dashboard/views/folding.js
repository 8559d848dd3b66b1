/** What folding did: savings net of broken caches, its stages, retries and refusals, and the conversations that lost most. */

import { meter } from "../charts.js";
import { h } from "../dom.js";
import { sum } from "../figures.js";
import { brief, money, plural, text, whole } from "../format.js";
import { address } from "../route.js";
import { table, tile, tiles } from "../table.js";
import { RUNGS, STAGES } from "../words.js";
import { counting } from "./requests.js";

export const title = "Folding";
export const filtered = true;

export async function load({ route, records }) {
  return records.count(route);
}

export function draw(sums, { route }) {
  if (!sums) return [h("h1", { tabindex: "-1" }, title), counting()];
  return [
    h("h1", { tabindex: "-1" }, title),
    sums.would_fold ? h("p", { class: "hint" }, `${plural(sums.would_fold, "request")} in mode observe would have been folded. Nothing was changed, so nothing is claimed as saved.`) : null,
    savedMoney(sums.savings),
    stages(sums.stages),
    h("div", { class: "cards" }, rungs(sums.rungs), signs(sums.signs)),
    worst(sums.losers, route),
  ];
}

const section = (name, ...content) => h("section", { class: "card" }, h("h2", {}, name), content);

function savedMoney(saved) {
  const unpriced = saved.unpriced ? ` ${plural(saved.unpriced, "request")} of models without a known price are left out of the dollars.` : "";
  return section("Saved",
    tiles(
      tile("Tokens not sent", whole(saved.tokens), plural(saved.requests, "folded request")),
      tile("At the input price", money(saved.gross)),
      tile("Less what caches would have given", saved.cache === null ? text(null) : money(-saved.cache), `${whole(saved.cache_lost)} tokens`),
      tile("Net", money(saved.net)),
    ),
    h("p", { class: "hint" }, `Compared with the same requests sent whole, as if the window had no end; what did not fit would in truth have been refused. Sent whole, a request would have read from the provider's cache what the one before it had sent.${unpriced}`),
    table({
      caption: "Savings by model",
      columns: [{ name: "Model" }, { name: "Folded", right: true }, { name: "Tokens not sent", right: true }, { name: "Price of a million", right: true }, { name: "Net", right: true }],
      rows: saved.models.map((each) => ({
        key: each.model,
        cells: [each.model, whole(each.requests), whole(each.tokens), each.price ? `${money(each.price.input)}, cached ${money(each.price.cached)}` : "unknown", money(each.net)],
      })),
      empty: "Nothing was folded.",
    }));
}

function stages(rows) {
  const all = Math.max(sum(rows.map((row) => Math.max(row.saved, 0))), 1);
  return section("By stage", table({
    caption: "Tokens saved by each stage of folding",
    columns: [{ name: "Stage" }, { name: "Requests", right: true }, { name: "Tokens saved", right: true }, { name: "Share" }],
    rows: rows.map((row) => ({
      key: row.stage,
      cells: [h("span", {}, row.stage.replaceAll("_", " "), h("small", {}, STAGES[row.stage] ?? "")), whole(row.requests), whole(row.saved), row.saved > 0 ? meter(row.saved / all, "under") : null],
    })),
    empty: "No stage of folding was needed.",
  }));
}

function rungs(rows) {
  return section("By rung of the ladder", table({
    caption: "Calls to upstreams by rung",
    columns: [{ name: "Rung" }, { name: "Calls", right: true }, { name: "Refused", right: true }],
    rows: rows.map((row) => ({ key: String(row.rung), cells: [RUNGS[row.rung] ?? String(row.rung), whole(row.calls), whole(row.refused)] })),
    empty: "No upstream was called.",
  }));
}

function signs(rows) {
  return section("Refusals", table({
    caption: "Refusals as too long, by upstream and sign",
    columns: [{ name: "Sign" }, { name: "Upstream" }, { name: "Refusals", right: true }],
    rows: rows.map((row) => ({ key: `${row.upstream} ${row.sign}`, cells: [row.sign, row.upstream, whole(row.count)] })),
    empty: "No upstream refused a request as too long.",
  }));
}

function worst(rows, route) {
  return section("Conversations that lost most", table({
    caption: "Conversations that lost most",
    columns: [{ name: "Conversation" }, { name: "Model" }, { name: "Requests", right: true }, { name: "Turns folded", right: true }, { name: "Lines lost", right: true }, { name: "Images", right: true }, { name: "Question characters", right: true }],
    rows: rows.map((row) => ({
      key: row.conversation,
      cells: [
        h("a", { href: address("conversation", {}, route, row.conversation) }, brief(row.session || row.conversation, 24), row.observed ? h("small", {}, "would lose, in mode enforce") : null),
        row.model, whole(row.requests), whole(row.lost.turns), whole(row.lost.lines), whole(row.lost.images), whole(row.lost.question_characters),
      ],
    })),
    empty: "No conversation lost anything.",
  }));
}
