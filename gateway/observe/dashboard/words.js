/** What the codes of a record mean, in plain sentences. */

import { plural, text, whole } from "./format.js";

export const ACTIONS = {
  none: "passed", fold: "folded", retry: "retried", observe: "observed", off: "off", error: "error",
};

export const WHY = {
  proven: "Its size in bytes proves that it fits, so it was forwarded byte for byte; tokens were not counted.",
  fits: "It fits the window, so it was forwarded byte for byte.",
  lowered: "The conversation fits once the answer's limit (max_tokens) is lowered. Nothing of the conversation was changed.",
  folded: "It did not fit, so it was made shorter.",
  observe: "Mode observe: it was forwarded as it came. The figures say what folding would have done.",
  off: "Folding is switched off for it; it was forwarded as it came.",
  too_large: "Even the smallest form does not fit the window.",
  failed: "A fault of the gateway's own. The client was served as well as possible without folding.",
  stateful: "It continues an earlier response that only the upstream holds; the history is not in the body.",
  compacted: "A compaction: the conversation was shortened at the client's request.",
  not_chat: "Another endpoint, passed through.",
  unknown_endpoint: "An endpoint that no documented API has, passed through.",
  not_json: "Its body is not JSON; passed through.",
  not_understood: "Its body is JSON but not a conversation; passed through.",
  websocket: "A websocket, connected through.",
  own: "Answered by the gateway itself.",
  rejected: "Refused by the gateway before anything was sent.",
  left: "The client left before it was decided what to send.",
  malformed: "Not valid HTTP.",
};

export const STAGES = {
  max_tokens: "the answer's limit was lowered",
  reasoning: "old reasoning removed",
  media: "old images and files became a note",
  tool_results: "old tool results shortened",
  turns: "the oldest turns folded",
  steps: "old steps of the current turn folded",
  giant: "one very large message cut",
  question: "the current question cut",
  digest: "taken by the digest of the folded part",
  summary: "taken by the summary of the folded part",
  recall: "taken by quotes that are relevant to the question",
  thinking: "signed thinking removed",
};

/** The rungs of the ladder, by their number. */
export const RUNGS = ["0: as it came", "1: folded", "2: hard, five turns at most", "3: system and question alone"];

export const PARTS = {
  system: "System messages",
  tools: "Tools and schemas",
  digest: "Digest of what was folded",
  quotes: "Quotes for the question",
  history: "History as it came",
  question: "Current question",
  reserve: "Reserved for the answer",
};

export const LOST = {
  turns: "turns no longer word for word",
  lines: "lines in neither digest nor quotes",
  images: "images, sounds and files",
  question_characters: "characters of the current question",
};

/** The story of one request, as sentences. */
export function story(record) {
  const told = [WHY[record.why] ?? `Reason: ${text(record.why)}.`];
  const { tokens_before: before, tokens_after: after, window, reserve } = record;
  if (before !== null && window) {
    const kept = reserve ? `, ${whole(reserve)} of them kept free for the answer` : "";
    told.push(`The client sent ${plural(before, "prompt token")}; the window of ${record.model} holds ${whole(window)}${kept}.`);
  }
  if (after !== null && before !== null && after < before) {
    const verb = record.mode === "observe" ? "would have been sent" : "were sent";
    told.push(`${whole(after)} ${verb}, ${whole(before - after)} fewer.`);
  }
  const lost = record.lost ?? {};
  const would = record.mode === "observe" ? " would" : "";
  if (record.turns_folded) told.push(`${plural(record.turns_folded, "turn")}${would} no longer stand word for word.`);
  if (lost.lines) told.push(`${plural(lost.lines, "line")} of them${would} stand neither in the digest nor in the quotes.`);
  if (lost.images) told.push(`${plural(lost.images, "image or file", "images or files")} ${would ? "would" : "did"} not reach the model.`);
  if (lost.question_characters) told.push(`The question itself was too large: ${plural(lost.question_characters, "character")} of it ${would ? "would be" : "were"} cut.`);
  if (record.refusals.length) told.push(`The upstream refused ${plural(record.refusals.length, "attempt")} as too long.`);
  return told;
}

/** What was lost, in short, or nothing. */
export function lostInShort(record) {
  const lost = record.lost ?? {};
  const names = { turns: "turn", lines: "line", images: "image", question_characters: "question char" };
  const found = Object.entries(names).filter(([name]) => lost[name]).map(([name, word]) => plural(lost[name], word)).join(", ");
  return found && record.mode === "observe" ? `would lose ${found}` : found;
}
