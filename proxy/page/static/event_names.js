// What the numbers in an event stand for: `licorne.model.values.events` has them.

const TYPES = { 1: "request", 2: "application", 3: "node", 4: "queue", 5: "user or group" };

const CHANGES = { 1: "set", 2: "added", 3: "removed" };

const DETAILS = {
  100: "request withdrawn",
  102: "request timed out",
  200: "allocation",
  201: "request",
  202: "rejected",
  203: "new",
  204: "accepted",
  206: "running",
  207: "completing",
  208: "completed",
  209: "failing",
  210: "failed",
  211: "resuming",
  212: "expired",
  213: "may not run: its queue has its maximum of applications",
  214: "may run in its queue",
  215: "may not run: its user or group has its maximum of applications",
  216: "may run for its user and group",
  300: "decommissioned",
  302: "schedulable",
  303: "allocation",
  304: "capacity",
  305: "occupied",
  306: "reservation",
  401: "dynamic queue",
  402: "kind of queue",
  403: "maximum",
  404: "guarantee",
  405: "application",
  407: "preemption for a lowered maximum",
  500: "allocation ended by the resource manager",
  501: "allocation preempted",
  502: "allocation timed out",
  503: "placeholder replaced",
  504: "allocation ended with its node",
  600: "limit of the user",
  601: "limit of the group",
  602: "application counted for the group",
  603: "use of the user",
  604: "use of the group",
};

/** Return the words for an event's type and change; a number that is unknown stays one. */
export function named(event) {
  const type = TYPES[event.type] ?? String(event.type ?? "");
  const change = CHANGES[event.eventChangeType] ?? "";
  const detail = DETAILS[event.eventChangeDetail] ?? String(event.eventChangeDetail ?? "");
  return { type, change: [detail, change].filter(Boolean).join(" ") };
}
