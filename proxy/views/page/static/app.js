// The frame of the page: what there is to choose, the summary, the views, the theme, the connection.

import { address, settle, takesFocus } from "./address.js";
import * as applications from "./applications.js";
import { closeDetail, focusDetail, whenLeft } from "./detail.js";
import { h, setText, setVariable } from "./dom.js";
import * as events from "./events.js";
import { openApplication } from "./explain.js";
import { counted, number, percent, quantity } from "./format.js";
import * as locks from "./locks.js";
import * as nodes from "./nodes.js";
import { addPolicies, showPolicies } from "./policies.js";
import * as preempted from "./preempted.js";
import { openQueue } from "./queue.js";
import * as queues from "./queues.js";
import { QUEUE, choose, isPaused, open, partition, pause, scarcest, store, watch } from "./store.js";
import { ask, setToken, token } from "./stream.js";
import * as timeline from "./timeline.js";
import * as usage from "./usage.js";
import { addWorkers, showWorkers } from "./workers.js";

const PANELS = { queues: openQueue, nodes: nodes.openNode, applications: openApplication };
const VIEWS = { queues, nodes, applications, timeline, usage, preempted, events, locks };
const TITLES = {
  queues: "Queues",
  nodes: "Nodes",
  applications: "Applications",
  timeline: "Over time",
  usage: "Users and groups",
  preempted: "Preempted",
  events: "Events",
  locks: "Locks",
};
const STATES = {
  live: "live",
  connecting: "connecting",
  waiting: "reconnecting",
  refused: "token required",
  absent: "no live data",
  unavailable: "not available",
};
/** How a partition is behind a door while it has no worker that schedules. */
const WITHOUT_WORKER = { Starting: "has no worker", Recovering: "is being recovered" };
const HIDDEN_MS = 30000;
const REASONS_MS = 5000;

const element = (id) => document.getElementById(id);
let leave = null;
let shown = "";
let opened = "";

// ------------------------------------------------------------------------------------------------ views

function show() {
  const wanted = address();
  const name = wanted.view in VIEWS ? wanted.view : "queues";
  if (wanted.partition in store.partitions && wanted.partition !== store.name) choose({ name: wanted.partition });
  if (name !== shown) showView(name);
  const id = name in PANELS ? wanted.id : "";
  if (partition() === null) return; // What the panel is of comes with the first data.
  if (id && id !== opened) {
    PANELS[name](id);
    if (takesFocus()) focusDetail();
  } else if (!id && opened) closeDetail();
  opened = id;
  settle(name, id);
}

function showView(name) {
  leave?.();
  closeDetail();
  opened = "";
  shown = name;
  const view = element("view");
  view.replaceChildren();
  view.dataset.view = name;
  document.title = `${TITLES[name]} · Licorne`;
  for (const tab of element("tabs").children) {
    const current = tab.dataset.view === name;
    if (current) {
      tab.setAttribute("aria-current", "page");
      tab.scrollIntoView({ block: "nearest", inline: "center" });
    } else tab.removeAttribute("aria-current");
  }
  leave = VIEWS[name].show(view);
  showTabs(); // The tab of the locks goes when its view is left, also where no data comes.
}

function fillTabs() {
  for (const [name, title] of Object.entries(TITLES)) {
    element("tabs").append(h("a", { href: `#${name}`, "data-view": name }, title));
  }
}

// -------------------------------------------------------------------------------------------- the choices

/** Show another partition, where what the panel shows is not, or another type. */
function moveTo(chosen) {
  if (chosen.name) closeDetail();
  if (chosen.name) opened = "";
  choose(chosen);
  settle(shown, opened);
}

function fillSelect(select, options, chosen, text) {
  const known = [...select.options].map((option) => `${option.value} ${option.text}`).join("\n");
  if (known !== options.map((option) => `${option} ${text(option)}`).join("\n")) {
    select.replaceChildren(...options.map((option) => h("option", { value: option }, text(option))));
  }
  select.value = chosen;
}

/** The lock graph is of an engine with locks. */
function showTabs() {
  element("tabs").querySelector('[data-view="locks"]').hidden = store.engine !== "threads" && shown !== "locks";
}

function showChoices() {
  const names = Object.keys(store.partitions);
  fillSelect(element("partition"), names, store.name, (name) => {
    const found = store.partitions[name];
    const text = names.length > 1 ? `${found.name} of ${found.rm}` : found.name;
    return found.halted?.[0] === "Stopped" ? `${text} (stopped)` : text;
  });
  fillSelect(element("resource"), ["", ...(partition()?.types ?? [])], store.type, (type) => type || "scarcest first");
}

// -------------------------------------------------------------------------------------------- the summary

const figures = {};

/** A figure of the summary; a kind of meter draws its share, null is for one that has none. */
function figure(name, title, meter) {
  const parts = {
    value: h("strong", {}, "–"),
    note: h("span", { class: "note" }, " "),
    bar: meter === null ? null : h("span", { class: meter }, h("i", {})),
  };
  figures[name] = parts;
  return h("div", { class: "figure" }, h("span", { class: "title" }, title), parts.value, parts.note, parts.bar ?? []);
}

function fillSummary() {
  element("summary").append(
    figure("used", "In use", "meter"),
    figure("nodes", "Nodes", "meter"),
    figure("applications", "Applications", "meter waits"),
    figure("allocations", "Allocations", null),
  );
  addWorkers(element("summary"));
  addPolicies(element("summary"));
}

function put(name, value, note, share) {
  setText(figures[name].value, value);
  setText(figures[name].note, note);
  if (figures[name].bar) setVariable(figures[name].bar, "--share", Math.min(1, Math.max(0, share || 0)).toFixed(4));
}

/** Say that the resource manager of the partition is not there: nothing is placed, and what is shown is what it had. */
function showHalted() {
  const known = partition();
  const banner = element("halted");
  banner.hidden = !known?.halted;
  if (banner.hidden) return;
  const [state, since, why] = known.halted;
  const time = new Date(since).toLocaleString();
  if (WITHOUT_WORKER[state]) {
    setText(banner, `Partition ${known.name} of ${known.rm} ${WITHOUT_WORKER[state]} since ${time}${why ? `: ${why}` : ""}; what is shown is what it had.`);
    return;
  }
  const what = state === "Paused" ? "nothing new is placed for it" : "what is shown is what it had";
  setText(banner, `Resource manager ${known.rm} is ${state.toLowerCase()} since ${time}: ${why}; ${what}.`);
}

/** Why applications wait, as a sum; read again while some do. */
let reasons = "";

async function readReasons() {
  const known = partition();
  if (known === null || isPaused()) return;
  if (!known.counts.waiting) reasons = "";
  else {
    const wanted = [["rm", known.rm], ["partition", known.name]];
    // The next reading comes soon.
    const found = await ask("licorne/v1/page/waiting", wanted).catch(() => null);
    if (found === null || known !== partition()) return;
    reasons = Object.entries(found).map(([reason, count]) => `${number(count)} ${reason}`).join(", ");
  }
  showSummary();
}

function showSummary() {
  const known = partition();
  if (known === null) return;
  const root = known.queues.root ?? [];
  const places = scarcest(known.types, known.capacity, root[QUEUE.allocated], root[QUEUE.pending], figures.used.at);
  figures.used.at = places[0];
  const uses = places.slice(0, 2).map((at) => {
    const [type, used, whole] = [known.types[at], root[QUEUE.allocated]?.[at] ?? 0, known.capacity?.[at] ?? 0];
    return { share: whole ? used / whole : 0, text: `${type} ${quantity(type, used)} of ${quantity(type, whole)}` };
  });
  put("used", percent(uses[0]?.share ?? 0), uses.map((each) => each.text).join(" · "), uses[0]?.share);
  const { counts } = known;
  const cordoned = counts.nodes - counts.schedulable;
  put("nodes", number(counts.nodes), cordoned ? `${number(cordoned)} cordoned` : "all take work", counts.schedulable / counts.nodes);
  const waiting = counts.waiting === 1 ? "1 waits" : `${number(counts.waiting)} wait`;
  put("applications", number(counts.applications), reasons ? `${waiting}: ${reasons}` : waiting, counts.waiting / counts.applications);
  put("allocations", number(known.allocations), `${counted(known.endedTotal, "application")} ended`, 0);
}

// ------------------------------------------------------------------------------- the theme, the connection

function showTheme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const button = element("theme");
  setText(button, dark ? "☀" : "☾");
  button.setAttribute("aria-label", dark ? "Use the light theme" : "Use the dark theme");
  button.dataset.next = dark ? "light" : "dark";
}

function switchTheme() {
  const next = element("theme").dataset.next;
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("licorne-theme", next);
  } catch {
    // It holds until the page is closed.
  }
  showTheme();
  choose({});
}

function showConnection() {
  const pill = element("connection");
  pill.dataset.state = store.state;
  setText(pill, STATES[store.state] ?? store.state);
  pill.title = store.state === "unavailable" ? store.why : "";
  const dialog = element("token");
  if (store.state !== "refused" || dialog.open) return;
  setText(element("token-wrong"), token() ? "This server does not know that token." : "");
  element("token-text").value = "";
  dialog.showModal();
}

function watchVisibility() {
  let timer = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(pause, HIDDEN_MS);
    else if (isPaused()) open();
  });
}

fillTabs();
fillSummary();
showTheme();
element("theme").addEventListener("click", switchTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  showTheme();
  choose({});
});
element("partition").addEventListener("change", (event) => moveTo({ name: event.target.value }));
element("resource").addEventListener("change", (event) => moveTo({ type: event.target.value }));
element("token").addEventListener("cancel", (event) => event.preventDefault()); // Without a token there is nothing to see.
element("token").addEventListener("close", () => {
  setToken(element("token-text").value);
  open();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  element("view").focus();
});
whenLeft(() => {
  opened = "";
  settle(shown, "");
});
watch(() => {
  if (!opened) show();
  showTabs();
  showConnection();
  showChoices();
  showHalted();
  showSummary();
  showWorkers();
  showPolicies();
});
addEventListener("hashchange", show);
store.wanted = { name: address().partition, type: address().type };
show();
watchVisibility();
setInterval(readReasons, REASONS_MS);
open();
