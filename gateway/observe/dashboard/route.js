/** Addresses within the page: `#/view/id?since=1h&model=m`. Filters stand in the address, so a view can be linked and gone back to. */

const VIEWS = ["requests", "models", "folding", "learned", "health", "conversation", "request"];
const NAMES = ["since", "key", "model", "session"];

export const filters = {
  since: [["15m", "15 minutes"], ["1h", "1 hour"], ["24h", "24 hours"], ["7d", "7 days"], ["", "all that is kept"]],
};
const SECONDS = { "15m": 900, "1h": 3600, "24h": 86400, "7d": 604800 };

/** Read an address; an unknown one shows the requests. */
export function parsed(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...rest] = path.split("/");
  const given = new URLSearchParams(search);
  const known = Object.fromEntries(NAMES.filter((name) => given.has(name)).map((name) => [name, given.get(name)]));
  return { view: VIEWS.includes(view) ? view : "requests", id: decoded(rest.join("/")), query: known };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a broken address names nothing, which the view then says
  }
}

/** The filters of a route, each with a value. */
export const query = (route) => Object.fromEntries(NAMES.map((name) => [name, route.query[name] ?? ""]));

/** Write the address of a view with the filters of a route, some of them changed. */
export function address(view, changed = {}, route = { query: {} }, id = "") {
  const values = Object.entries({ ...route.query, ...changed }).filter(([, value]) => value !== "");
  const search = new URLSearchParams(values).toString();
  return `#/${view}${id && `/${encodeURIComponent(id)}`}${search && `?${search}`}`;
}

/** The moment since which records are wanted, in seconds since 1970; null for all. */
export const since = (route) => (SECONDS[route.query.since] ? Date.now() / 1000 - SECONDS[route.query.since] : null);
