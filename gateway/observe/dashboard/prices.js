/** Prices of the models in a set of records; asked for once a model. */

import { get } from "./api.js";

const known = {};

/** Return, by model, dollars for a million tokens {input, cached, output, source}, or null where no price is known. */
export async function prices(records) {
  const missing = [...new Set(records.map((record) => record.model))].filter((model) => model && !(model in known)).slice(0, 100);
  if (missing.length) Object.assign(known, await get("prices", { models: JSON.stringify(missing) }));
  return known;
}
