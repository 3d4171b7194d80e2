// The applications: a table with a filter, and why the chosen one waits.

import { go } from "./address.js";
import { leaveDetail } from "./detail.js";
import { choices, h, setText } from "./dom.js";
import { age, clock, counted, natural, number, resource } from "./format.js";
import { APP, ENDED, has, now, partition, waits, watch } from "./store.js";
import { ask } from "./stream.js";
import { Table } from "./table.js";

const ORDER_MS = 1000;
const REASONS_MS = 3000;
const REASONS_MAX = 100;
const DAY_MS = 24 * 60 * 60 * 1000;
const COLUMNS = [
  { key: "id", title: "Application" },
  { key: "state", title: "State" },
  { key: "queue", title: "Queue" },
  { key: "user", title: "User" },
  { key: "age", title: "Age", numeric: true },
  { key: "uses", title: "Uses", numeric: true },
  { key: "waits", title: "Waits for", numeric: true },
  { key: "why", title: "Why" },
];
const ENDED_COLUMNS = [
  ...COLUMNS.slice(0, 4),
  { key: "ended", title: "Ended", numeric: true },
  { key: "lasted", title: "Lasted", numeric: true },
  { key: "reason", title: "Reason" },
];
const KINDS = [
  ["active", "Active"],
  ["waiting", "Waiting"],
  ["ended", "Ended"],
];

export function show(view) {
  const filter = h("input", { type: "search", placeholder: "Find by name, queue or user", "aria-label": "Find applications", autocomplete: "off" });
  const says = h("p", { class: "note says", "aria-live": "polite" });
  const kinds = choices("kind", "Which applications", KINDS);
  let kind = "active";
  const orders = { active: ["age", true], waiting: ["age", true], ended: ["ended", true] };
  let laid = 0;
  let timer = 0;

  /** Why those that are in sight wait, in few words. */
  let reasons = {};
  const asking = new AbortController();
  const frame = h("div", { class: "table-frame" });
  let table = null;
  view.append(h("h1", { class: "visually-hidden" }, "Applications"), h("div", { class: "tools" }, filter, kinds, says), frame);
  makeTable();

  /** What has ended has other columns than what is active. */
  function makeTable() {
    table?.close();
    table = new Table({ columns: kind === "ended" ? ENDED_COLUMNS : COLUMNS, label: "Applications", cells, onOpen, onOrder });
    table.element.dataset.of = kind === "ended" ? "ended" : "active";
    frame.replaceChildren(table.element);
    table.showOrder(...orders[kind]);
  }

  function rowsOfKind() {
    const known = partition();
    return (kind === "ended" ? known?.ended : known?.applications) ?? {};
  }

  function cells(id) {
    const known = partition();
    if (kind === "ended") return endedCells(known.ended[id]);
    const row = known.applications[id];
    if (!row) return { kind: "gone", id, state: "gone", queue: "", user: "", age: "", uses: "", waits: "", why: "" };
    const isWaiting = waits(row);
    return {
      kind: isWaiting ? "waiting" : "calm",
      id,
      state: row[APP.backoff] && row[APP.backoff] > now() ? `${row[APP.state]}, backs off` : row[APP.state],
      queue: row[APP.queue],
      user: row[APP.user],
      age: age(now() - row[APP.submitted]),
      uses: resource(known.types, sum(row[APP.allocated], row[APP.placeholders])),
      waits: isWaiting ? resource(known.types, row[APP.pending]) : "",
      why: isWaiting ? (reasons[id] ?? "") : "",
    };
  }

  function endedCells(row) {
    if (!row) return { kind: "gone", id: "", state: "gone", queue: "", user: "", ended: "", lasted: "", reason: "" };
    const finished = row[ENDED.finished];
    return {
      kind: row[ENDED.state] === "Completed" ? "calm" : "failed",
      id: row[ENDED.id],
      state: row[ENDED.state],
      queue: row[ENDED.queue],
      user: row[ENDED.user],
      ended: finished === null ? "" : now() - finished < DAY_MS ? clock(finished, true) : `${age(now() - finished)} ago`,
      lasted: finished === null ? "" : age(finished - row[ENDED.submitted]),
      reason: row[ENDED.state] === "Completed" ? "" : row[ENDED.reason],
    };
  }

  /** The function that returns by what a row is ordered. */
  function ordering() {
    const [order] = orders[kind];
    if (kind === "ended") {
      return {
        id: (_, row) => natural(row[ENDED.id]),
        state: (_, row) => row[ENDED.state],
        queue: (_, row) => row[ENDED.queue],
        user: (_, row) => row[ENDED.user],
        ended: (_, row) => row[ENDED.finished] ?? row[ENDED.submitted],
        lasted: (_, row) => (row[ENDED.finished] ?? row[ENDED.submitted]) - row[ENDED.submitted],
        reason: (_, row) => row[ENDED.reason],
      }[order];
    }
    const capacity = partition()?.capacity ?? [];
    const size = (values) => (values ?? []).reduce((most, each, at) => Math.max(most, (each ?? 0) / (capacity[at] || 1)), 0);
    return {
      id: (id) => natural(id),
      state: (_, row) => row[APP.state],
      queue: (_, row) => row[APP.queue],
      user: (_, row) => row[APP.user],
      age: (_, row) => -row[APP.submitted],
      uses: (_, row) => size(sum(row[APP.allocated], row[APP.placeholders])),
      waits: (_, row) => size(row[APP.pending]),
      why: (id) => reasons[id] ?? "",
    }[order];
  }

  function lay() {
    clearTimeout(timer);
    timer = 0;
    laid = performance.now();
    const text = filter.value.trim().toLowerCase();
    const found = [];
    const rows = rowsOfKind();
    const keyOf = ordering();
    let total = 0;
    for (const [id, row] of Object.entries(rows)) {
      if (kind === "waiting" && !waits(row)) continue;
      total += 1;
      if (text) {
        const parts = kind === "ended" ? [row[ENDED.id], row[ENDED.queue], row[ENDED.user], row[ENDED.state]] : [id, row[APP.queue], row[APP.user], row[APP.state]];
        if (!parts.some((part) => part.toLowerCase().includes(text))) continue;
      }
      found.push([keyOf(id, row), id]);
    }
    const turn = orders[kind][1] ? -1 : 1;
    found.sort(([a, x], [b, y]) => (a < b ? -turn : a > b ? turn : x < y ? -1 : 1));
    table.lay(found.map(([, id]) => id));
    const all = kind === "ended" ? (partition()?.endedTotal ?? 0) : total;
    setText(says, found.length < all ? `${number(found.length)} of ${counted(all, "application")}` : counted(found.length, "application"));
  }

  /** Order anew once a second at most: rows that jump cannot be read. */
  function layLater() {
    if (timer) return;
    timer = setTimeout(lay, Math.max(0, ORDER_MS - (performance.now() - laid)));
  }

  function onOrder(key) {
    const [order, descending] = orders[kind];
    orders[kind] = [key, key === order ? !descending : table.columns.some((column) => column.key === key && column.numeric)];
    table.showOrder(...orders[kind]);
    lay();
  }

  function onOpen(id, byKey = false) {
    go("applications", kind === "ended" ? partition().ended[id][ENDED.id] : id, byKey);
  }

  filter.addEventListener("input", lay);
  kinds.addEventListener("change", (event) => {
    kind = event.target.value;
    leaveDetail();
    makeTable();
    lay();
  });
  async function readReasons() {
    const known = partition();
    const ids = kind === "ended" ? [] : [...table.rows.keys()].filter((id) => waits(known?.applications[id] ?? []));
    if (!ids.length) return;
    const wanted = [["rm", known.rm], ["partition", known.name], ...ids.slice(0, REASONS_MAX).map((id) => ["application", id])];
    // The next reading comes soon.
    const found = await ask("licorne/v1/page/reasons", wanted, asking.signal).catch(() => null);
    if (found === null) return;
    reasons = { ...reasons, ...found };
    table.draw(new Set(ids));
  }

  lay();
  const first = setTimeout(readReasons, ORDER_MS / 4);
  const reading = setInterval(readReasons, REASONS_MS);
  const ticking = setInterval(() => table.draw(), 1000);
  const stop = watch((changes) => {
    if (!has(changes, "applications", "ended")) return;
    if (changes === "all") {
      lay();
      return;
    }
    table.draw(changes[kind === "ended" ? "ended" : "applications"] ?? new Set());
    layLater();
  });
  return () => {
    stop();
    asking.abort();
    clearTimeout(first);
    clearInterval(reading);
    clearInterval(ticking);
    clearTimeout(timer);
    table.close();
  };
}

function sum(left, right) {
  if (!right?.some(Boolean)) return left;
  return right.map((each, at) => (each ?? 0) + (left?.[at] ?? 0));
}
