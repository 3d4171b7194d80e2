// Where each partition runs behind a door, and how it is; nothing where all run in the process that answers.

import { foldedTable } from "./folded.js";
import { counted, number } from "./format.js";
import { store } from "./store.js";

const table = foldedTable("workers", ["Partition", "State", "Since", "Worker", "Waiting", "Reason"]);

/** Add the box, which is hidden until there are workers. */
export function addWorkers(place) {
  place.append(table.box);
}

export function showWorkers() {
  const { workers } = store;
  const running = workers.filter((each) => each.state === "Running").length;
  const lost = workers.length - running;
  const said = lost ? `${number(running)} of ${counted(workers.length, "partition")} run on workers` : `${counted(workers.length, "partition")} on workers`;
  table.fill(said, lost > 0, workers.map((each) => [each.state, [
    `${each.partition} of ${each.rmID}`,
    each.state.toLowerCase(),
    new Date(each.since / 1e6).toLocaleString(),
    each.address ? `${each.address}, number ${number(each.workerNumber)}` : "none",
    number(each.requestsWaiting),
    each.reason,
  ]]));
}
