/** From records to figures. Nothing here knows the page; a value that cannot be known is null. */

/** Upper bounds of the classes of fullness: tenths of the window up to it, then what is beyond. */
export const CLASSES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 2, Infinity];
/** Seconds after which a prompt cache is taken to be empty, for models without a published rule: the shortest of those that are published. */
const CACHE_LIVES_S = 300;
const MILLION = 1e6;

export const sum = (values) => values.reduce((total, value) => total + value, 0);
export const folded = (record) => record.mode === "enforce" && (record.action === "fold" || record.action === "retry");
export const wouldFold = (record) => record.mode === "observe" && record.steps.length > 0;

/** Prompt tokens as they were forwarded; in mode observe nothing was changed. */
export const sentOn = (record) => (record.mode === "observe" ? asked(record) : record.tokens_after ?? asked(record));

/** Prompt tokens as the client sent them: counted, or where the size was proof enough, as billed. */
export const asked = (record) => record.tokens_before ?? record.prompt_tokens;

/** The headline of a set of records. */
export function totals(records) {
  const refusals = sum(records.map((record) => record.refusals.length));
  return {
    requests: records.length,
    folded: records.filter(folded).length,
    wouldFold: records.filter(wouldFold).length,
    retries: sum(records.map((record) => Math.max(record.attempts - 1, 0))),
    refusals,
    errors: records.filter((record) => record.status >= 400 || record.error).length,
    lossy: records.filter(losing).length,
  };
}

/** Whether the current question, an image or whole lines did not reach the model. */
export const losing = (record) => Object.values(record.lost ?? {}).some((count) => count > 0);

/** Requests over time: equal pieces of time, and how many requests of each kind fell into each. */
export function overTime(records, pieces = 60) {
  const times = records.map((record) => record.at).filter(Boolean);
  if (!times.length) return null;
  const first = Math.min(...times);
  const step = niceStep((Math.max(...times) - first) / pieces);
  const start = Math.floor(first / step) * step;
  const count = Math.floor((Math.max(...times) - start) / step) + 1;
  const kinds = { all: () => true, folded, failed: (record) => record.status >= 400 || Boolean(record.error) };
  const rows = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, new Array(count).fill(0)]));
  for (const record of records) {
    if (!record.at) continue;
    const place = Math.floor((record.at - start) / step);
    for (const [kind, fits] of Object.entries(kinds)) if (fits(record)) rows[kind][place] += 1;
  }
  return { step, times: Array.from({ length: count }, (_, place) => start + place * step), ...rows };
}

/** A length of time that reads well, not shorter than the given one. In seconds. */
export function niceStep(least) {
  return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200].find((step) => step >= least) ?? 86400;
}

/** Each model's fullness: how much of its window at the time the prompts took, as clients sent them; `window` is the newest. */
export function fullness(records) {
  const measured = records.filter((record) => record.window > 0 && asked(record) !== null);
  return [...Map.groupBy(measured, (record) => `${record.upstream}\n${record.model}`).values()]
    .map((rows) => {
      const shares = rows.map((record) => asked(record) / record.window).sort((one, other) => one - other);
      const counts = CLASSES.map((bound, place) => shares.filter((share) => share <= bound && share > (CLASSES[place - 1] ?? -1)).length);
      const windows = rows.map((record) => record.window);
      const { model, upstream, window, entry } = rows[0];
      return {
        model, upstream, window, entry, counts,
        smallest: Math.min(...windows),
        largest: Math.max(...windows),
        requests: rows.length,
        folded: rows.filter(folded).length,
        over: shares.filter((share) => share > 1).length,
        median: quantile(shares, 0.5),
        p95: quantile(shares, 0.95),
        most: shares.at(-1),
      };
    })
    .sort((one, other) => other.requests - one.requests);
}

const quantile = (sorted, share) => sorted[Math.min(Math.floor(share * sorted.length), sorted.length - 1)];

/** What each stage of folding saved, or took where it is negative, the largest first. A stage of mode observe saved nothing and is left out. */
export function byStage(records) {
  const steps = records.filter((record) => record.mode === "enforce").flatMap((record) => record.steps);
  return [...Map.groupBy(steps, (step) => step.stage)]
    .map(([stage, rows]) => ({ stage, requests: rows.length, saved: sum(rows.map((step) => step.saved)) }))
    .sort((one, other) => other.saved - one.saved);
}

/** How far up the ladder folded requests had to climb, and the refusals on the way. */
export function byRung(records) {
  const calls = records.flatMap((record) => record.calls);
  return [...Map.groupBy(calls, (call) => call.rung)]
    .map(([rung, rows]) => ({ rung, calls: rows.length, refused: rows.filter((call) => call.sign).length }))
    .sort((one, other) => one.rung - other.rung);
}

export function bySign(records) {
  const refused = records.flatMap((record) => record.refusals.map((sign) => ({ sign, upstream: record.upstream })));
  return [...Map.groupBy(refused, ({ sign, upstream }) => `${upstream}\n${sign}`).values()]
    .map((rows) => ({ ...rows[0], count: rows.length }))
    .sort((one, other) => other.count - one.count);
}

/** The conversations that lost most, the worst first. */
export function losers(records, most = 10) {
  return [...Map.groupBy(records.filter((record) => record.conversation && losing(record)), (record) => record.conversation)]
    .map(([conversation, rows]) => {
      const worst = (name) => Math.max(...rows.map((record) => record.lost[name]));
      return {
        conversation, session: rows[0].session, model: rows[0].model, requests: rows.length,
        observed: rows.every((record) => record.mode === "observe"),
        lines: worst("lines"), turns: worst("turns"), images: worst("images"), question: worst("question_characters"),
      };
    })
    .sort((one, other) => other.question - one.question || other.lines - one.lines)
    .slice(0, most);
}

/**
 * What folding saved, net of what it cost in broken prompt caches.
 *
 * Compared with the same requests sent whole, as if the model's window had no end. Sent whole, a request would have read from the
 * provider's cache what the one before it had sent, where this provider caches: by its published rule, or because a bill said so. `prices` gives dollars for a million tokens by
 * model, or null.
 */
export function savings(records, prices) {
  const rows = [];
  const read = new Set(records.filter((record) => record.cached_tokens > 0).map((record) => record.model));
  const caches = (model) => read.has(model) || Boolean(prices[model]?.lifetime_s);
  for (const [, requests] of Map.groupBy(records.filter(counts), (record) => record.conversation || record.request_id)) {
    let before = null;
    for (const record of requests.toSorted((one, other) => one.at - other.at)) {
      if (folded(record)) rows.push(saved(record, caches(record.model) ? before : null, prices[record.model] ?? null));
      before = record;
    }
  }
  const priced = rows.filter((row) => row.net !== null);
  return {
    tokens: sum(rows.map((row) => row.tokens)),
    cacheLost: sum(rows.map((row) => row.cacheLost)),
    requests: rows.length,
    unpriced: rows.length - priced.length,
    gross: priced.length ? sum(priced.map((row) => row.gross)) : null,
    cache: priced.length ? sum(priced.map((row) => row.cache)) : null,
    net: priced.length ? sum(priced.map((row) => row.net)) : null,
    models: [...Map.groupBy(rows, (row) => row.model).entries()].map(([model, each]) => ({
      model,
      requests: each.length,
      tokens: sum(each.map((row) => row.tokens)),
      cacheLost: sum(each.map((row) => row.cacheLost)),
      price: prices[model] ?? null,
      net: each[0].net === null ? null : sum(each.map((row) => row.net)),
    })),
  };
}

const counts = (record) => record.mode === "enforce" && record.status < 400 && asked(record) !== null;

function saved(record, before, price) {
  const whole = record.tokens_before;
  const sent = record.prompt_tokens ?? record.tokens_after;
  const cached = record.cached_tokens ?? 0;
  const warm = before !== null && record.at - before.at < (price?.lifetime_s ?? CACHE_LIVES_S);
  const wouldRead = warm ? Math.min(asked(before), whole) : cached;
  const tokens = whole - sent;
  const cacheLost = Math.max(wouldRead - cached, 0);
  const row = { model: record.model, tokens, cacheLost, gross: null, cache: null, net: null };
  if (price === null) return row;
  const gross = (tokens * price.input) / MILLION;
  const cache = ((wouldRead - cached) * (price.input - (price.cached ?? price.input))) / MILLION;
  return { ...row, gross, cache, net: gross - cache };
}
