// What the server has said, and who wants to know when it changes.

import { listen } from "./stream.js";

const TABLES = ["queues", "nodes", "applications", "users", "groups", "ended"];

/** The columns of the rows, as `licorne.proxy.views.page.feed` writes them. */
export const NODE = { capacity: 0, available: 1, flags: 2, out: 3 }; // The last one of a node that takes no work.
export const SCHEDULABLE = 1;
export const RESERVED = 2;
export const QUEUE = {
  leaf: 0, managed: 1, state: 2, guaranteed: 3, maximum: 4, allocated: 5, pending: 6, preempting: 7,
  running: 8, most: 9, mean: 10, // The mean is there where the past counts.
};
export const APP = {
  user: 0, queue: 1, state: 2, pending: 3, allocated: 4, placeholders: 5, priority: 6, submitted: 7, backoff: 8,
};
export const ENDED = { id: 0, user: 1, queue: 2, state: 3, submitted: 4, finished: 5, reason: 6 };
export const USAGE = { queue: 0, used: 1, applications: 2, limit: 3, most: 4, mean: 5 };

/** Of equals the type that people know best is first: the last of these. */
const USUAL = ["memory", "vcore"];
const STEADY = 0.05;

export const store = {
  partitions: {},
  name: "",
  /** The chosen resource type; empty for the scarcest of each queue and node. */
  type: "",
  /** The partition and the type that the address asks for. */
  wanted: { name: "", type: "" },
  engine: "",
  /** Where each partition runs behind a door; empty where all run in the server. */
  workers: [],
  /** Whether the server has a stream of events. */
  events: null,
  state: "connecting",
  why: "",
  /** How far the clock of the server is ahead of ours. */
  ahead: 0,
  number: 0,
  messages: 0,
};

const listeners = new Set();
let dirty = null;
let scheduled = false;
let stop = null;

export function partition() {
  return store.partitions[store.name] ?? null;
}

export function now() {
  return Date.now() + store.ahead;
}

/**
 * The places of the resource types of something, the one with the highest use and demand first; a chosen type is
 * before all. Types of which it has nothing are left out. The first place of before stays first until another type
 * is clearly scarcer: what is read must not jump.
 */
export function scarcest(types, whole, used, pending = null, before = -1) {
  const share = (at) => {
    if (types[at] === store.type) return Infinity;
    const most = whole?.[at] ?? 0;
    const wanted = (used?.[at] ?? 0) + (pending?.[at] ?? 0);
    return (most ? wanted / most : wanted ? 1 : -1) + (at === before ? STEADY : 0);
  };
  const places = types.map((_, at) => at).sort((a, b) => USUAL.indexOf(types[b]) - USUAL.indexOf(types[a]));
  return places.map((at) => [at, share(at)]).filter(([, each]) => each >= 0).sort(([, a], [, b]) => b - a).map(([at]) => at);
}

/** The maximum that holds for a queue of each type: the least of its own and those above it. */
export function ceiling(known, path) {
  const least = [...(known.capacity ?? [])];
  for (let upper = path; upper; upper = upper.slice(0, Math.max(0, upper.lastIndexOf(".")))) {
    known.queues[upper]?.[QUEUE.maximum]?.forEach((own, at) => {
      if (own !== null && own < (least[at] ?? 0)) least[at] = own;
    });
  }
  return least;
}

/** Be told of changes, once a frame at most; returns the function that ends it. */
export function watch(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function choose(chosen) {
  Object.assign(store, chosen);
  store.wanted = { ...store.wanted, ...chosen };
  settle();
  touch(null);
}

/** Begin to read, or begin anew. */
export function open() {
  stop?.();
  stop = listen("licorne/v1/live", { onEvent, onState });
}

export function pause() {
  stop?.();
  stop = null;
}

export function isPaused() {
  return stop === null;
}

function onState(state) {
  if (state === "live") return; // Only connected: without a document nothing that is shown is live.
  store.state = state;
  store.number = -1;
  touch({});
}

function onEvent(kind, message) {
  if (kind === "unavailable") {
    store.state = "unavailable";
    store.why = message.why;
    touch({});
    return;
  }
  store.messages += 1;
  store.state = "live";
  store.ahead = message.time - Date.now();
  if (message.workers || kind === "full") store.workers = message.workers ?? [];
  if (kind === "full") {
    store.partitions = message.partitions;
    for (const known of Object.values(store.partitions)) count(known);
    store.engine = message.engine;
    store.events = message.events;
    settle();
    touch(null);
  } else if (store.number >= 0 && message.number !== store.number + 1) {
    open(); // Something was lost on the way: begin with the full document.
    return;
  } else {
    for (const [name, changed] of Object.entries(message.partitions)) merge(name, changed);
    if (message.workers) touch({});
  }
  store.number = message.number;
}

function merge(name, changed) {
  const known = store.partitions[name];
  const whole = changed?.rm !== undefined; // A worker in the place of a lost one gives its partition anew.
  if (known === undefined && !whole) return;
  if (changed === null || whole) {
    if (changed === null) delete store.partitions[name];
    else store.partitions[name] = count(changed);
    settle();
    touch(null);
    return;
  }
  const ids = {};
  for (const [key, part] of Object.entries(changed)) {
    if (!TABLES.includes(key)) {
      known[key] = part;
      continue;
    }
    const table = known[key];
    ids[key] = Object.keys(part);
    for (const id of ids[key]) {
      if (table[id]) tally(known.counts, key, table[id], -1);
      if (part[id]) tally(known.counts, key, part[id], 1);
      if (part[id] === null) delete table[id];
      else table[id] = part[id];
    }
  }
  if (name === store.name) touch(ids);
}

/** Whether an application waits for something. */
export function waits(row) {
  return Boolean(row[APP.pending]?.some((each) => each > 0));
}

/** Count what the summary says: going through all rows with each change would cost more than drawing it. */
function count(known) {
  known.counts = { nodes: 0, schedulable: 0, applications: 0, waiting: 0 };
  for (const key of ["nodes", "applications"]) {
    for (const row of Object.values(known[key])) tally(known.counts, key, row, 1);
  }
  return known;
}

function tally(counts, key, row, by) {
  if (key === "nodes") {
    counts.nodes += by;
    if (row[NODE.flags] & SCHEDULABLE) counts.schedulable += by;
  } else if (key === "applications") {
    counts.applications += by;
    if (waits(row)) counts.waiting += by;
  }
}

/** Choose a partition and a resource type that there are. */
function settle() {
  const names = Object.keys(store.partitions);
  if (!names.includes(store.name)) store.name = names.includes(store.wanted.name) ? store.wanted.name : (names[0] ?? "");
  const types = partition()?.types ?? [];
  if (!types.includes(store.type)) store.type = types.includes(store.wanted.type) ? store.wanted.type : "";
}

/** Note what changed: `null` is everything, otherwise the ids by table. */
function touch(ids) {
  if (ids === null || dirty === "all") dirty = "all";
  else {
    dirty ??= {};
    for (const [key, names] of Object.entries(ids)) {
      dirty[key] ??= new Set();
      for (const id of names) dirty[key].add(id);
    }
  }
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    const changes = dirty;
    dirty = null;
    for (const listener of [...listeners]) listener(changes);
  });
}

export function has(changes, ...tables) {
  return changes === "all" || tables.some((table) => changes[table]);
}
