/** What the admin port is asked. The token, where one is set, lives as long as the browser's tab. */

const TOKEN = "turnfold-token";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;
export const setToken = (token) => sessionStorage.setItem(TOKEN, token);
export const dropToken = () => sessionStorage.removeItem(TOKEN);

/** GET a path below /api with query values; those that are empty are left out. Throws Refused. */
export function get(path, query = {}) {
  const values = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = new URLSearchParams(values).toString();
  return ask(`../api/${path}${search ? `?${search}` : ""}`, {});
}

/** POST a value as JSON. Throws Refused. */
export function post(path, value) {
  return ask(`../api/${path}`, { method: "POST", body: JSON.stringify(value), headers: { "Content-Type": "application/json" } });
}

async function ask(url, init) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...init.headers, ...(token === null ? {} : { Authorization: `Bearer ${token}` }) };
  let response;
  try {
    response = await fetch(url, { ...init, headers, cache: "no-store" });
  } catch {
    throw new Refused(0, "The gateway's admin port does not answer. The page tries again by itself.");
  }
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Refused(response.status, body?.error?.message ?? `The admin port answered ${response.status}.`);
  return body;
}
