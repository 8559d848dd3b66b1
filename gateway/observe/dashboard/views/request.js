/** One request: what was done and why, what filled the window, what was lost, and where text is kept, line by line what became of it. */

import { get } from "../api.js";
import { parted } from "../charts.js";
import { h } from "../dom.js";
import { sum } from "../figures.js";
import { bytes, day, percent, seconds, text, whole } from "../format.js";
import { whole as record } from "../records.js";
import { address } from "../route.js";
import { facts, table } from "../table.js";
import { LOST, PARTS, RUNGS, STAGES, story } from "../words.js";
import { action } from "./requests.js";

export const title = "Request";
export const still = true;

export async function load({ route }) {
  return record(await get(`exchanges/${encodeURIComponent(route.id)}`));
}

export function draw(found, { route }) {
  return [
    h("h1", { tabindex: "-1" }, title, " ", h("code", {}, found.request_id)),
    section("What was done", h("p", {}, action(found)), h("p", { class: "story" }, story(found).join(" ")), found.warning && h("p", {}, "The client was told: ", h("code", {}, found.warning))),
    bar(found), losses(found), steps(found), calls(found), lines(found), details(found, route),
  ];
}

const section = (name, ...content) => h("section", { class: "card" }, h("h2", {}, name), content);

function bar(found) {
  if (!found.parts) return null;
  const parts = Object.entries(PARTS).map(([name, label]) => ({ name, label, size: found.parts[name] ?? 0 }));
  const used = sum(parts.map((part) => part.size));
  const total = Math.max(used, found.window || 0, 1);
  const label = `The window of ${whole(found.window)} tokens: ${parts.filter((part) => part.size).map((part) => `${part.label} ${whole(part.size)}`).join(", ")}, free ${whole(total - used)}.`;
  const rows = [...parts, { name: "free", label: "Free", size: Math.max((found.window || 0) - used, 0) }];
  return section("The window", parted({ label, parts, total }), table({
    caption: "What fills the window",
    columns: [{ name: "Part" }, { name: "Tokens", right: true }, { name: "Of the window", right: true }],
    rows: rows.map((part) => ({ key: part.name, cells: [h("span", { class: "legend" }, h("i", { class: `part-${part.name}`, "aria-hidden": "true" }), part.label), whole(part.size), percent(part.size / total)] })),
  }));
}

function losses(found) {
  const lost = Object.entries(LOST).filter(([name]) => found.lost?.[name]);
  if (!lost.length) return null;
  return section("What did not reach the model", table({
    caption: "What did not reach the model",
    columns: [{ name: "What" }, { name: "How many", right: true }],
    rows: lost.map(([name, label]) => ({ key: name, cells: [label, whole(found.lost[name])] })),
  }));
}

function steps(found) {
  if (!found.steps.length) return null;
  return section("Steps", table({
    caption: "Steps of folding, in order",
    columns: [{ name: "Stage" }, { name: "Tokens saved", right: true }, { name: "Detail" }],
    rows: found.steps.map((step, place) => ({ key: String(place), cells: [h("span", {}, step.stage.replaceAll("_", " "), h("small", {}, STAGES[step.stage] ?? "")), whole(step.saved), step.detail] })),
  }), h("p", { class: "hint" }, "A negative number is what a digest, a summary or quotes take."));
}

function calls(found) {
  return section("Calls to upstreams", table({
    caption: "Calls to upstreams, in order",
    columns: [{ name: "Upstream" }, { name: "Model" }, { name: "Rung" }, { name: "Tokens", right: true }, { name: "Status", right: true }, { name: "Refusal" }, { name: "Stated limit", right: true }, { name: "Took", right: true }],
    rows: found.calls.map((call, place) => ({
      key: String(place),
      cells: [call.upstream, call.model, RUNGS[call.rung] ?? String(call.rung), whole(call.tokens), call.status ? String(call.status) : "no answer", text(call.sign), whole(call.limit), seconds(call.seconds)],
    })),
    empty: "No upstream was called.",
  }));
}

function lines(found) {
  if (!found.text) return h("p", { class: "hint" }, "No text of this request is kept. With observe.text: true, this page shows each line: whether it was kept, quoted or dropped, and why.");
  return h("div", { class: "lines" }, section("Line by line", table({
    caption: "What stood, what was quoted, what went",
    columns: [{ name: "What became of it" }, { name: "Role" }, { name: "Text" }],
    rows: found.text.map((line, place) => ({
      key: String(place),
      class: line.kept ? "kept" : "gone",
      cells: [h("span", { class: `fate ${line.kept ? "kept" : "gone"}` }, line.why), line.role, h("span", { class: "text", dir: "auto" }, line.text)],
    })),
    empty: "No text is kept of this request.",
  })));
}

/** The method and the path, which may break in front of each slash. */
const endpoint = ({ method, path }) => (method || path ? h("span", {}, method, " ", path.split("/").map((part, place) => [place ? h("wbr") : null, place ? `/${part}` : part])) : text(null));

function details(found, route) {
  return section("All facts", facts([
    ["Time", day(found.at)],
    ["Client", text(found.client)],
    ["Key", text(found.key)],
    ["Endpoint", endpoint(found)],
    ["Session", text(found.session)],
    ["Conversation", found.conversation ? h("a", { href: address("conversation", {}, route, found.conversation) }, found.conversation) : text(null)],
    ["Upstream", text(found.upstream)],
    ["Model asked for", text(found.model)],
    ["Model used", text(found.model_used)],
    ["Window", found.window ? `${whole(found.window)} (${text(found.entry)})` : text(null)],
    ["Mode", text(found.mode)],
    ["Format", text(found.format)],
    ["Counted", text(found.basis)],
    ["Tokens before", whole(found.tokens_before)],
    ["Tokens after", whole(found.tokens_after)],
    ["Billed", whole(found.prompt_tokens)],
    ["Read from a cache", whole(found.cached_tokens)],
    ["Answer", whole(found.completion_tokens)],
    ["Body", bytes(found.body_bytes)],
    ["Answer's body", bytes(found.answer_bytes)],
    ["Status", String(found.status)],
    ["Error", text(found.error)],
    ["Decided in", seconds(found.decided_s)],
    ["First byte after", seconds(found.first_byte_s)],
    ["Took", seconds(found.total_s)],
  ]));
}
