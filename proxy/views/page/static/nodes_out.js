// Below the heat map: how the free room is split over nodes, and which nodes are out, since when, why and by whom.

import { link } from "./address.js";
import { h, setText } from "./dom.js";
import { age, percent, quantity } from "./format.js";
import { NODE, QUEUE, SCHEDULABLE, now, partition, scarcest } from "./store.js";

const SHOWN_MAX = 50;
const REFRESH_MS = 1000;

/** Make the two parts; the function that is returned draws them anew, soon. */
export function addNodesOut(view) {
  const room = h("p", { class: "note", id: "free-room" });
  const list = h("ul", { class: "lines", "aria-label": "Nodes that take no work" });
  view.append(room, list);
  let timer = 0;
  const draw = () => {
    timer = 0;
    const known = partition();
    if (known === null) return;
    const nodes = Object.entries(known.nodes);
    setText(room, freeRoom(nodes.map(([, row]) => row)));
    if (list.contains(document.activeElement)) return; // A new link would not have the focus.
    const out = nodes.filter(([, row]) => !(row[NODE.flags] & SCHEDULABLE));
    list.replaceChildren(...out.slice(0, SHOWN_MAX).map(([id, row]) => h("li", {}, h("a", { class: "name", href: link("nodes", id) }, id), h("span", { class: "note" }, ` ${outText(row)}`))));
  };
  draw();
  return () => {
    timer ||= setTimeout(draw, REFRESH_MS);
  };
}

/** Why a node takes no work, in words. */
export function outText(row) {
  const [since, reason, by] = row[NODE.out] ?? [null, "", ""];
  return ["cordoned", since ? `for ${age(now() - since)}` : "", by ? `by ${by}` : ""].filter(Boolean).join(" ") + (reason ? `: ${reason}` : "");
}

/** The share of the free room on nodes that something runs on, as in the report of a simulation. */
function freeRoom(rows) {
  const known = partition();
  const root = known.queues.root ?? [];
  const [at] = scarcest(known.types, known.capacity, root[QUEUE.allocated], root[QUEUE.pending]);
  const type = known.types[at] ?? "";
  let [free, beside, largest] = [0, 0, 0];
  for (const row of rows) {
    const left = row[NODE.available]?.[at] ?? 0;
    if (!(row[NODE.flags] & SCHEDULABLE) || left <= 0) continue;
    free += left;
    largest = Math.max(largest, left);
    if (row[NODE.capacity].some((whole, each) => (whole ?? 0) > (row[NODE.available]?.[each] ?? 0))) beside += left;
  }
  if (!free) return `No ${type} is free.`;
  return `Free: ${type} ${quantity(type, free)}, of it ${percent(beside / free)} on nodes with work; at most ${quantity(type, largest)} on one node.`;
}
