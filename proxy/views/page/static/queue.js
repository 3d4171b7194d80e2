// The panel of a queue: its settings, its limits, and what is in it.

import { counted, quantities, quantity } from "./format.js";
import { facts, folded, named, openPanel } from "./panel.js";
import { APP, USAGE, partition, store } from "./store.js";
import { ask } from "./stream.js";

export function openQueue(path) {
  const where = `ws/v1/partition/${encodeURIComponent(store.name)}/queue/${encodeURIComponent(path)}`;
  openPanel(path, (signal) => ask(where, {}, signal), parts);
}

function parts(queue) {
  const path = queue.queuename;
  const within = Object.entries(partition()?.applications ?? {}).filter(([, row]) => row[APP.queue] === path);
  return [
    facts([
      ["Kind", [queue.isLeaf ? "leaf" : "parent", queue.isManaged ? "" : "dynamic", queue.status].filter(Boolean).join(", ")],
      ["Above", named("queues", queue.parent)],
      ["In use", quantities(queue.allocatedResource)],
      ["Mean use", quantities(queue.decayedMean)],
      ["Waits", quantities(queue.pendingResource)],
      ["Guaranteed", quantities(queue.guaranteedResource)],
      ["Maximum", quantities(queue.maxResource)],
      ["Headroom", quantities(queue.headroom)],
      ["Being preempted", quantities(queue.preemptingResource)],
      ["Applications", queue.maxRunningApps ? `${queue.runningApps ?? 0} of ${queue.maxRunningApps} run` : `${queue.runningApps ?? 0} run`],
      ["Order", [queue.sortingPolicy, queue.prioritySorting ? "priorities first" : ""].filter(Boolean).join(", ")],
      ["Preemption", preemption(queue)],
      ...Object.entries(queue.properties ?? {}),
    ]),
    folded("limits", "Limits of users and groups", limits(path), ([name, text]) => [named("usage", name), ` ${text}`]),
    folded("below", counted((queue.childNames ?? []).length, "queue") + " below", queue.childNames ?? [], (name) => named("queues", name)),
    folded("applications", counted(within.length, "application"), within, ([id, row]) => [named("applications", id), ` ${row[APP.state]} · ${row[APP.user]}`]),
  ];
}

function preemption(queue) {
  if (!queue.preemptionEnabled) return "off";
  return [`after ${queue.preemptionDelay}`, queue.isPreemptionFence ? "fence" : "", queue.isPriorityFence ? "priority fence" : ""].filter(Boolean).join(", ");
}

/** Who is limited in a queue, and to what. */
function limits(path) {
  const known = partition();
  return ["users", "groups"].flatMap((kind) =>
    Object.entries(known?.[kind] ?? {}).flatMap(([name, rows]) =>
      rows
        .filter((row) => row[USAGE.queue] === path && (row[USAGE.limit] || row[USAGE.most]))
        .map((row) => [name, [...known.types.map((type, at) => limited(row, type, at)), row[USAGE.most] ? `${row[USAGE.applications]} of ${row[USAGE.most]} applications` : ""].filter(Boolean).join(", ")]),
    ),
  );
}

function limited(row, type, at) {
  const limit = row[USAGE.limit]?.[at];
  if (limit === null || limit === undefined) return "";
  return `${type} ${quantity(type, row[USAGE.used]?.[at] ?? 0)} of ${quantity(type, limit)}`;
}
