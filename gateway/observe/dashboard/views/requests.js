/** The requests as they come: the headline, their number over time, and a table of the newest. */

import { lines, meter } from "../charts.js";
import { h } from "../dom.js";
import { asked, sum } from "../figures.js";
import { brief, money, percent, plural, seconds, short, text, time, whole } from "../format.js";
import { address } from "../route.js";
import { table, tile, tiles } from "../table.js";
import { ACTIONS, WHY, lostInShort } from "../words.js";

export const title = "Requests";
export const filtered = true;

export async function load({ route, records }) {
  const [found, sums] = await Promise.all([records.load(route), records.count(route)]);
  return { found, sums };
}

export function draw({ found, sums }, { route, records }) {
  return [h("h1", { tabindex: "-1" }, title), ...(sums ? [headline(sums), overview(sums.over_time)] : [counting()]), newest(found.slice(0, records.shown), route), more(found, records)];
}

/** What stands where figures will stand. */
export const counting = () => h("p", { class: "hint", role: "status" }, "The gateway is counting the requests of this period. The figures follow by themselves.");

function headline(total) {
  const saved = total.savings;
  const share = (count) => (total.requests ? percent(count / total.requests) : "");
  const cached = total.cached_tokens / Math.max(total.billed_tokens, 1);
  return tiles(
    tile("Requests", whole(total.requests)),
    total.would_fold
      ? tile("Would be folded", whole(total.would_fold), "mode observe: nothing was changed")
      : tile("Folded", whole(total.folded), share(total.folded)),
    tile("Refused as too long", whole(total.refusals), plural(total.retries, "retry", "retries")),
    tile("Tokens not sent", short(saved.tokens), plural(saved.requests, "request")),
    tile("Saved", money(saved.net), saved.net === null ? "no price is known" : "net of broken caches"),
    tile("Read from caches", total.billed ? percent(cached) : text(null), "of billed prompt tokens"),
    tile("Errors", whole(total.errors), share(total.errors)),
  );
}

function overview(over) {
  if (over === null) return null;
  const label = `Requests over time, in pieces of ${seconds(over.step)}: ${sum(over.all)} in all, ${sum(over.folded)} folded, ${sum(over.failed)} failed.`;
  const drawn = (values) => [...values, values.at(-1)]; // a step needs its end
  const series = [
    { label: "Requests", colour: "blue", values: drawn(over.all), step: true, fill: true },
    { label: "Folded", colour: "teal", values: drawn(over.folded), step: true, fill: true },
    { label: "Failed", colour: "red", values: drawn(over.failed), step: true },
  ];
  return h("section", { class: "card" }, lines({ label, times: [...over.times, over.times.at(-1) + over.step], series }));
}

export function newest(found, route, caption = "Requests, newest first") {
  const columns = [
    { name: "Time" }, { name: "Model" }, { name: "What was done" }, { name: "Tokens", right: true }, { name: "Window" },
    { name: "Lost" }, { name: "Key" }, { name: "Conversation" }, { name: "Status", right: true }, { name: "Took", right: true },
  ];
  const rows = found.map((record) => ({
    key: record.request_id,
    cells: [
      h("a", { href: address("request", {}, route, record.request_id) }, time(record.at)),
      clipped(record.model, `${record.model} at ${record.upstream}`),
      action(record),
      tokens(record),
      asked(record) !== null && record.window ? meter(asked(record) / record.window) : text(null),
      h("span", { class: lostInShort(record) && "lost" }, lostInShort(record)),
      clipped(record.key),
      conversation(record, route),
      h("span", { class: record.status >= 400 ? "bad" : null }, String(record.status)),
      seconds(record.total_s),
    ],
  }));
  return table({ caption, columns, rows, empty: "No request matches. Send one through the gateway, or choose a longer period or other filters." });
}

/** A name of any length in one line; the whole of it stands in its title. */
const clipped = (name, title = name) => (name ? h("span", { class: "clip", title }, name) : text(null));

export function action(record) {
  return h("span", { class: `action action-${record.action}`, title: WHY[record.why] ?? "" }, ACTIONS[record.action] ?? record.action,
    record.why && record.why !== record.action && record.why !== "folded" ? h("small", {}, ` ${record.why.replaceAll("_", " ")}`) : null);
}

export function tokens(record) {
  const { tokens_before: before, tokens_after: after } = record;
  if (before === null) return record.prompt_tokens === null ? text(null) : whole(record.prompt_tokens);
  if (after === null || after === before) return whole(before);
  return record.mode === "observe" ? `${whole(before)}, folded ${whole(after)}` : `${whole(before)} → ${whole(after)}`;
}

function conversation(record, route) {
  const shown = record.session || record.conversation;
  if (!record.conversation) return text(shown);
  return h("a", { href: address("conversation", {}, route, record.conversation), title: record.conversation }, brief(shown, 14));
}

function more(found, records) {
  if (found.length <= records.shown) return null;
  return h("p", { class: "buttons" }, h("button", { type: "button", "data-action": "more" }, `Show ${Math.min(records.page, found.length - records.shown)} more`));
}
