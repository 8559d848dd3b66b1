/** The page: chooses the view by the address, keeps it up to date while it is seen, and asks for the token where one is needed. */

import { Refused, dropToken, hasToken, post, setToken } from "./api.js";
import { recolour } from "./charts.js";
import { h, update } from "./dom.js";
import { plural, time } from "./format.js";
import { address, filters, parsed, query } from "./route.js";
import { Records } from "./records.js";
import * as conversation from "./views/conversation.js";
import * as folding from "./views/folding.js";
import * as health from "./views/health.js";
import * as learned from "./views/learned.js";
import * as models from "./views/models.js";
import * as request from "./views/request.js";
import * as requests from "./views/requests.js";

const EVERY_MS = 2000;
/** Seconds of counting above which the page says when it was done: the figures then stand for twenty times as long. */
const SLOW_S = 0.5;
const THEME = "turnfold-theme";
const VIEWS = { requests, models, folding, learned, health, conversation, request };
const IN_MENU = ["requests", "models", "folding", "learned", "health"];

const records = new Records();
const page = (id) => document.getElementById(id);
let route = parsed(location.hash);
let data = null;
let failure = null;
let paused = false;
let timer = 0;
let turn = 0;

/** Load what the view needs and draw it; a later call makes an earlier one void. */
async function refresh() {
  clearTimeout(timer);
  const mine = ++turn;
  const view = VIEWS[route.view];
  try {
    const loaded = await view.load({ route, records });
    if (mine !== turn) return;
    [data, failure] = [loaded, null];
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (mine !== turn) return;
    failure = error;
  }
  draw();
  schedule();
}

function schedule() {
  clearTimeout(timer);
  const waits = paused || document.hidden || failure?.status === 401 || VIEWS[route.view].still;
  if (!waits) timer = setTimeout(refresh, EVERY_MS);
}

function draw() {
  const view = VIEWS[route.view];
  document.title = `${view.title} · Turnfold`;
  const fresh = h("main");
  if (failure?.status === 401) fresh.append(tokenForm());
  else if (failure && data === null) fresh.append(h("h1", { tabindex: "-1" }, view.title), problem(failure));
  else fresh.append(...[failure && problem(failure), ...drawn(view)].filter(Boolean));
  update(page("main"), fresh);
  drawMenu();
  drawFilters();
  drawState();
}

/** Draw a view; what it cannot draw must not leave an older view standing as if it were this one. */
function drawn(view) {
  try {
    return view.draw(data, { route, records });
  } catch (error) {
    console.error(error);
    return [h("h1", { tabindex: "-1" }, view.title), problem(new Refused(400, "This page cannot show what the gateway sent. Reload it: the gateway may be newer than the page."))];
  }
}

function problem(error) {
  const retry = error.status === 404 || error.status === 400 ? "" : " The page tries again by itself.";
  const message = error.message.endsWith("by itself.") ? error.message : error.message + retry;
  return h("p", { class: "problem", role: "alert", "data-key": "problem" }, message);
}

function tokenForm() {
  const wrong = hasToken() ? h("p", { class: "problem", role: "alert" }, "The admin port does not accept this token.") : null;
  return h("form", { class: "token", "data-submit": "token", "data-key": "token" },
    h("h1", { tabindex: "-1" }, "Token needed"), wrong,
    h("p", {}, "The admin port asks for its token: the value of ", h("code", {}, "admin.token"), " in the configuration."),
    h("label", { for: "token" }, "Token"),
    h("input", { id: "token", name: "token", type: "password", autocomplete: "off", required: true }),
    h("p", { class: "hint" }, "It is kept in this tab until the tab is closed."),
    h("button", {}, "Continue"));
}

function drawMenu() {
  const link = (name) => h("a", { href: address(name, {}, route), "aria-current": name === route.view ? "page" : null }, VIEWS[name].title);
  update(page("views"), h("nav", {}, h("ul", {}, IN_MENU.map((name) => h("li", {}, link(name))))));
}

function drawFilters() {
  const form = page("filters");
  form.hidden = !VIEWS[route.view].filtered || failure?.status === 401;
  const select = (name, label, choices) => h("label", {}, label, " ",
    h("select", { name }, choices.map(([value, shown]) => h("option", { value, selected: value === query(route)[name] }, shown))));
  const named = (name, label) => select(name, label, [["", "all"], ...records.seen(name, query(route)[name]).map((each) => [each, each])]);
  update(form, h("form", {},
    select("since", "Period", filters.since), named("key", "Key"), named("model", "Model"), named("session", "Session"),
    h("a", { href: address(route.view, {}, { query: {} }), class: "button", hidden: !records.narrowed(query(route)) }, "Clear filters")));
  for (const each of form.querySelectorAll("select")) each.value = query(route)[each.name];
}

function drawState() {
  const live = paused ? "Paused." : document.hidden ? "Waiting: the page is hidden." : failure ? "Not connected." : "Live.";
  const count = VIEWS[route.view].filtered && !failure && records.sums ? ` ${counted(records.sums)}` : "";
  const signOut = hasToken() ? h("button", { type: "button", "data-action": "sign-out" }, "Drop the token") : null;
  update(page("state"), h("p", {}, live + count, signOut && " ", signOut));
}

/** How many requests the figures are of; where counting takes long, they stand for a while. */
function counted(sums) {
  const older = sums.complete ? "" : "; older ones are left out";
  return `${plural(sums.requests, "request")}${older}${sums.took_s > SLOW_S ? `, counted at ${time(sums.at)}` : ""}.`;
}

/** Ask the operator, then forget; the answer stands above the view. */
async function forget({ question, order, label }) {
  page("confirm-title").textContent = label;
  page("confirm-text").textContent = question;
  const dialog = page("confirm");
  dialog.returnValue = "cancel";
  dialog.showModal();
  await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
  if (dialog.returnValue !== "confirm") return;
  try {
    await post("forget", JSON.parse(order));
    failure = null;
  } catch (error) {
    failure = error;
    draw();
    return;
  }
  await refresh();
}

const ACTIONS = {
  forget,
  more: () => {
    records.shown += records.page;
    draw();
  },
  pause: () => {
    paused = !paused;
    page("pause").setAttribute("aria-pressed", paused);
    drawState();
    if (paused) clearTimeout(timer);
    else refresh();
  },
  "sign-out": () => {
    dropToken();
    records.clear();
    data = null;
    refresh();
  },
};

function go() {
  const next = parsed(location.hash);
  const moved = next.view !== route.view || next.id !== route.id;
  if (moved) data = null;
  route = next;
  records.shown = records.page;
  refresh().then(() => {
    if (!moved) return;
    scrollTo(0, 0);
    page("main").querySelector("h1")?.focus({ preventScroll: true });
  });
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  localStorage.setItem(THEME, theme);
  recolour(document);
}

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-action]");
  if (target) ACTIONS[target.dataset.action]?.(target.dataset);
  if (event.target.closest(".skip")) {
    event.preventDefault();
    page("main").focus();
  }
});
document.addEventListener("submit", (event) => {
  if (event.target.dataset.submit !== "token") return;
  event.preventDefault();
  setToken(new FormData(event.target).get("token").trim());
  refresh();
});
page("filters").addEventListener("submit", (event) => event.preventDefault());
page("filters").addEventListener("change", (event) => {
  location.hash = address(route.view, { [event.target.name]: event.target.value }, route);
});
document.addEventListener("visibilitychange", () => (document.hidden ? (clearTimeout(timer), drawState()) : refresh()));
page("theme").value = localStorage.getItem(THEME) ?? "";
page("theme").addEventListener("change", (event) => setTheme(event.target.value));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => recolour(document));
addEventListener("hashchange", go);
setTheme(page("theme").value);
refresh();
