/** The records that the page holds: loaded once, then only what is new; one set for each choice of filters. The sums of all records, also of those that it does not hold, are the gateway's. */

import { get } from "./api.js";
import { query, since } from "./route.js";

/** Records that are held at most. Chosen: a megabyte or two. */
const MOST = 2000;
/** Records that are asked for when the page is already loaded; only where all of them are new is the rest asked for too. */
const NEWEST = 100;
/** Every so many times all are asked for: a long answer that began before the newest ends after them. */
const ALL_EVERY = 15;
/** Milliseconds that a view waits for sums before it is drawn without them. */
const WAIT_MS = 1000;
const NONE = { turns: 0, lines: 0, images: 0, question_characters: 0 };

/** Give a record of an older gateway the fields that it lacks. */
export const whole = (record) => ({ refusals: [], steps: [], calls: [], lost: NONE, parts: null, at: null, key: "", session: "", conversation: "", ...record });

export class Records {
  page = 50;
  shown = 50;
  /** The sums of all records under the filters, as the gateway counted them last. */
  sums = null;
  #filter = "";
  #counted = null;
  #counting = null;
  #answer = null;
  #loads = 0;
  #byId = new Map();
  #seen = { key: new Set(), model: new Set(), session: new Set() };

  clear() {
    this.#byId.clear();
    this.#filter = "";
    this.sums = null;
  }

  /** The values of a field that records had so far, and the chosen one. */
  seen(name, chosen) {
    const all = new Set(this.#seen[name]);
    if (chosen) all.add(chosen);
    return [...all].sort();
  }

  narrowed = (chosen) => Object.values(chosen).some(Boolean);

  /** Load the sums of all records under a route's filters; null while the gateway counts for longer than the page waits. */
  async count(route) {
    const chosen = query(route);
    const filter = JSON.stringify(chosen);
    if (this.#counted !== filter) this.sums = null;
    if (this.#counting !== filter) {
      this.#counting = filter;
      this.#answer = get("sums", chosen).then((sums) => this.#adopt(filter, sums)).finally(() => this.#counting === filter && (this.#counting = null));
      this.#answer.catch(() => null); // a view that waits for it says so
    }
    await Promise.race([this.#answer, new Promise((waited) => setTimeout(waited, WAIT_MS))]);
    return this.#counted === filter ? this.sums : null;
  }

  #adopt(filter, sums) {
    if (this.#counting !== filter) return;
    [this.sums, this.#counted] = [sums, filter];
    for (const [name, values] of Object.entries(this.#seen)) sums.names[name].forEach((value) => values.add(value));
  }

  /** Load what is new under a route's filters; return its records, newest first. */
  async load(route) {
    const chosen = query(route);
    const filter = JSON.stringify(chosen);
    if (filter !== this.#filter) {
      this.#byId.clear();
      this.#filter = filter;
    }
    const from = since(route);
    const { key, model, session } = chosen;
    const ask = (limit) => get("exchanges", { key, model, session, since: from, limit });
    this.#loads += 1;
    let found = this.#byId.size && this.#loads % ALL_EVERY ? await ask(NEWEST) : [];
    if (!found.some((record) => this.#byId.has(record.request_id))) found = await ask(MOST);
    if (filter !== this.#filter) return [];
    this.#take(found.map(whole), from);
    return this.#sorted();
  }

  #take(found, from) {
    for (const record of found) {
      this.#byId.set(record.request_id, record);
      for (const [name, values] of Object.entries(this.#seen)) if (record[name]) values.add(record[name]);
    }
    const kept = this.#sorted().filter((record) => from === null || record.at >= from).slice(0, MOST);
    this.#byId = new Map(kept.map((record) => [record.request_id, record]));
  }

  #sorted() {
    return [...this.#byId.values()].sort((one, other) => other.at - one.at);
  }
}
