/** How numbers, times and names are written. An unknown value is a dash, never a zero. */

export const UNKNOWN = "–";

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY_S = 86400;

const known = (value) => value !== null && value !== undefined && value !== "" && !Number.isNaN(value);

export const whole = (value) => (known(value) ? WHOLE.format(value) : UNKNOWN);
export const short = (value) => (known(value) ? SHORT.format(value) : UNKNOWN);
export const text = (value) => (known(value) ? String(value) : UNKNOWN);

/** A share as a percentage; small ones keep a digit. */
export function percent(share) {
  if (!known(share)) return UNKNOWN;
  const hundredths = share * 100;
  const digits = hundredths !== 0 && Math.abs(hundredths) < 10 ? 1 : 0;
  return `${hundredths.toFixed(digits)} %`;
}

/** US dollars; cents where they matter. */
export function money(dollars) {
  if (!known(dollars)) return UNKNOWN;
  const size = Math.abs(dollars);
  const digits = size === 0 || size >= 1 ? 2 : size >= 0.01 ? 3 : 5;
  return `${dollars < 0 ? "−" : ""}$${size.toFixed(digits)}`;
}

export function seconds(value) {
  if (!known(value)) return UNKNOWN;
  if (value < 0.001) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`;
  return value < 90 ? `${value.toFixed(1)} s` : `${(value / 60).toFixed(1)} min`;
}

export function bytes(value) {
  if (!known(value)) return UNKNOWN;
  if (value < 1024) return `${value} B`;
  return value < 2 ** 20 ? `${(value / 1024).toFixed(1)} KiB` : `${(value / 2 ** 20).toFixed(1)} MiB`;
}

/** The time of day today, with the day before that. `moment` is seconds since 1970. */
export function time(moment, now = Date.now() / 1000) {
  if (!known(moment)) return UNKNOWN;
  return (now - moment < DAY_S / 2 ? CLOCK : DAY).format(moment * 1000);
}

export function day(moment) {
  return known(moment) ? DAY.format(moment * 1000) : UNKNOWN;
}

export function plural(count, one, many = `${one}s`) {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** The beginning of a long name or identifier. */
export function brief(id, length = 10) {
  return id.length > length ? `${id.slice(0, length)}…` : id;
}
