/** One conversation: its requests in time, and how the cut moved. */

import { get } from "../api.js";
import { lines } from "../charts.js";
import { h } from "../dom.js";
import { asked, sentOn, sum } from "../figures.js";
import { day, percent, plural, seconds, text, time, whole } from "../format.js";
import { whole as record } from "../records.js";
import { address } from "../route.js";
import { facts, table } from "../table.js";
import { lostInShort } from "../words.js";
import { action, tokens } from "./requests.js";

export const title = "Conversation";
/** A window is drawn up to so many times the largest prompt. Chosen: the other lines still fill a third of the height. */
const FAR = 3;

export async function load({ route }) {
  const found = await get(`conversations/${encodeURIComponent(route.id)}`);
  const rows = Array.isArray(found) ? found : found.exchanges;
  return rows.map(record).sort((one, other) => one.at - other.at);
}

export function draw(found, { route }) {
  const heading = h("h1", { tabindex: "-1" }, title);
  if (!found.length) return [heading, h("p", { class: "empty" }, `No request of conversation ${route.id} is kept any more.`)];
  const [first, last] = [found[0], found.at(-1)];
  return [
    heading,
    facts([
      ["Conversation", h("code", {}, route.id)],
      first.session ? ["Session", first.session] : null,
      first.key ? ["Key", first.key] : null,
      ["Model", [...new Set(found.map((each) => each.model))].join(", ")],
      ["Requests", whole(found.length)],
      ["From", day(first.at)],
      ["To", day(last.at)],
      ["The cut moved", times(moves(found).length)],
      ["Read from caches", cached(found)],
    ]),
    chart(found),
    cuts(found),
    steps(found, route),
  ];
}

const times = (count) => (count === 0 ? "never" : plural(count, "time"));
const behind = (each) => each.turns_folded;

/** The requests at which the number of folded turns changed. */
function moves(found) {
  return found.filter((each, place) => behind(each) !== (place ? behind(found[place - 1]) : 0));
}

function cached(found) {
  const billed = found.filter((each) => each.prompt_tokens !== null);
  if (!billed.some((each) => each.cached_tokens !== null)) return text(null);
  return percent(sum(billed.map((each) => each.cached_tokens ?? 0)) / Math.max(sum(billed.map((each) => each.prompt_tokens)), 1));
}

const section = (name, ...content) => h("section", { class: "card" }, h("h2", {}, name), content);

function chart(found) {
  const counted = found.filter((each) => asked(each) !== null);
  if (!counted.length) return null;
  const last = counted.at(-1);
  const label = `Tokens of each request in time: the client's grew from ${whole(asked(counted[0]))} to ${whole(asked(last))}; ${whole(sentOn(last))} were sent at the end; the window holds ${whole(last.window)}.`;
  const high = FAR * Math.max(...counted.map(asked)); // a window far above all that was sent would press every other line flat
  const series = [
    { label: "Sent by the client", colour: "blue", values: counted.map(asked) },
    { label: "Sent on", colour: "teal", values: counted.map(sentOn), fill: true },
    { label: "Window", colour: "red", values: counted.map((each) => (each.window && each.window <= high ? each.window : null)), dash: true },
  ];
  if (counted.some((each) => each.cached_tokens !== null)) series.splice(2, 0, { label: "Read from a cache", colour: "amber", values: counted.map((each) => each.cached_tokens) });
  return section("Tokens", lines({ label, times: counted.map((each) => each.at), series }));
}

function cuts(found) {
  const moved = moves(found);
  if (!moved.length) return section("The cut", h("p", { class: "empty" }, "Nothing of this conversation was folded: every turn stands word for word."));
  const most = Math.max(...found.map(behind));
  const label = `Folded turns over time: the cut moved ${times(moved.length)}, to ${plural(most, "turn")}.`;
  const series = [{ label: "Turns folded", colour: "violet", values: found.map(behind), step: true, fill: true }];
  return section("The cut", h("p", { class: "hint" }, "The turns in front of the cut are folded. While it stands, the same bytes are sent in front of the newest turns, and prompt caches hit."),
    lines({ label, times: found.map((each) => each.at), series }));
}

function steps(found, route) {
  const moved = new Set(moves(found));
  return section("Its requests", table({
    caption: "Requests of the conversation, oldest first",
    columns: [{ name: "Time" }, { name: "What was done" }, { name: "Tokens", right: true }, { name: "Cached", right: true }, { name: "Turns folded", right: true }, { name: "Cut" }, { name: "Lost" }, { name: "Status", right: true }, { name: "Took", right: true }],
    rows: found.map((each) => ({
      key: each.request_id,
      class: moved.has(each) ? "moved" : null,
      cells: [
        h("a", { href: address("request", {}, route, each.request_id) }, time(each.at)), action(each), tokens(each), whole(each.cached_tokens),
        whole(behind(each)), behind(each) || moved.has(each) ? (moved.has(each) ? "moved" : "stands") : "", h("span", { class: "lost" }, lostInShort(each)), h("span", { class: each.status >= 400 ? "bad" : null }, String(each.status)), seconds(each.total_s),
      ],
    })),
  }));
}
