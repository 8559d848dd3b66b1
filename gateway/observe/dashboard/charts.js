/** Charts: lines over time by uPlot, bars as SVG. Each has a text that says the same; the tables beside them have the figures. */

import { h, svg } from "./dom.js";
import { percent, short, whole } from "./format.js";
import uPlot from "./vendor/uPlot.esm.js";

const HEIGHT = 220;
const NARROW = 560;
/** Seconds that may lie between two marks of the time axis. */
const STEPS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800];
/** Seconds between two marks of the time axis, and what is written at them. */
const CLOCKS = [
  [60, new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" })],
  [86400, new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" })],
  [Infinity, new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" })],
];

/** Colours follow the theme, so they are read when a chart is drawn. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Resolve light-dark(): a canvas knows colours only, so an element is asked for its computed one. */
function resolved(name) {
  const probe = document.createElement("span");
  probe.style.color = colour(name);
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/**
 * Draw lines over time. `series` has {label, colour, values, step, dash, fill}; `label` says in words what is to be seen.
 * The chart adapts to its width and to the theme, and keeps its cursor when the values change.
 */
export function lines({ label, times, series, unit = "" }) {
  const host = h("div", { class: "chart", role: "img", "aria-label": label });
  host.chart = { times, series, unit };
  let plot = null;
  const draw = () => {
    plot?.destroy();
    plot = new uPlot(options(host), [host.chart.times, ...host.chart.series.map((each) => each.values)], host);
  };
  host.redraw = (chart) => {
    const shape = (one) => JSON.stringify(one.series.map((each) => [each.label, each.colour]));
    const same = shape(chart) === shape(host.chart);
    host.chart = chart;
    if (!plot) return;
    if (same) plot.setData([chart.times, ...chart.series.map((each) => each.values)]);
    else draw();
  };
  const sized = new ResizeObserver(() => {
    if (!host.isConnected) return;
    if (plot && plot.width !== host.clientWidth) plot.setSize({ width: host.clientWidth, height: HEIGHT });
    else if (!plot) draw();
  });
  sized.observe(host);
  host.recolour = draw;
  return host;
}

function options(host) {
  const { series, unit } = host.chart;
  const grid = { stroke: resolved("line"), width: 1 };
  const font = "12px system-ui, sans-serif";
  const axis = { stroke: resolved("muted"), grid, ticks: grid, font };
  return {
    width: host.clientWidth,
    height: HEIGHT,
    padding: [null, 28, null, null], // the last mark of the time axis is not cut
    cursor: { y: false, points: { size: 6 } },
    legend: { live: host.clientWidth >= NARROW },
    scales: { y: { range: (_, low, high) => [Math.min(low, 0), Math.max(high * 1.08, 1)] } },
    axes: [{ ...axis, incrs: STEPS, values: (_, marks, __, ___, step) => marks.map((mark) => CLOCKS.find(([below]) => step < below)[1].format(mark * 1000)) }, { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) || tick >= 10 ? short(tick) : "")) }],
    series: [
      { label: "Time", value: (_, moment) => (moment === null ? "–" : new Date(moment * 1000).toLocaleTimeString("en-GB")) },
      ...series.map((each) => ({
        label: each.label,
        stroke: resolved(each.colour),
        fill: each.fill ? resolved(`${each.colour}-soft`) : undefined,
        width: 2,
        dash: each.dash ? [6, 4] : undefined,
        paths: each.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
        points: { show: !each.step && host.chart.times.length < 80, size: 5 },
        spanGaps: true,
        value: (_, value) => (value === null || value === undefined ? "–" : `${whole(value)}${unit}`),
      })),
    ],
  };
}

/** Draw the charts anew, because the theme changed. */
export function recolour(root) {
  root.querySelectorAll(".chart").forEach((host) => host.recolour?.());
}

/** A distribution as bars; the bound that is `limit` gets a line behind it. */
export function distribution({ label, bounds, counts, limit }) {
  const most = Math.max(...counts, 1);
  const width = 100 / counts.length;
  const place = (bounds.indexOf(limit) + 1) * width;
  return svg(
    "svg",
    { class: "distribution", role: "img", "aria-label": label, viewBox: "0 0 100 40", preserveAspectRatio: "none" },
    svg("line", { class: "base", x1: 0, x2: 100, y1: 39.6, y2: 39.6 }),
    counts.map((count, index) => {
      const height = count ? Math.max((count / most) * 37, 1) : 0;
      return svg("rect", { class: bounds[index] > limit ? "over" : "under", x: index * width + 0.4, width: width - 0.8, y: 39.4 - height, height });
    }),
    svg("line", { class: "limit", x1: place, x2: place, y1: 0, y2: 40 }),
  );
}

/** One bar whose parts add up to the whole; a part is {name, label, size}. */
export function parted({ label, parts, total }) {
  let left = 0;
  const drawn = parts.filter((part) => part.size > 0).map((part) => {
    const width = (100 * part.size) / total;
    const rect = svg("rect", { class: `part part-${part.name}`, x: left, y: 0, width, height: 10 }, svg("title", {}, `${part.label}: ${whole(part.size)}`));
    left += width;
    return rect;
  });
  return svg("svg", { class: "parted", role: "img", "aria-label": label, viewBox: "0 0 100 10", preserveAspectRatio: "none" }, drawn);
}

/** How full something is, as the kind of a meter. */
const fullnessOf = (share) => (share > 1 ? "over" : share > 0.8 ? "near" : "under");

/** A small bar in a table: a share of a whole, with its number beside it; coloured as a window that fills, or by a kind. */
export function meter(share, kind = fullnessOf(share)) {
  if (share === null || share === undefined) return null;
  const fullness = Math.min(share, 1) * 100;
  return h("span", { class: "meter" },
    svg("svg", { class: kind, viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "track", width: 100, height: 8 }), svg("rect", { class: "level", width: fullness, height: 8 })),
    h("span", {}, percent(share)));
}
