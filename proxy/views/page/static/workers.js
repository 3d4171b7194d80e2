// Where each partition runs behind a door, and how it is; nothing where all run in the process that answers.

import { h, setText } from "./dom.js";
import { counted, number } from "./format.js";
import { store } from "./store.js";

const TITLES = ["Partition", "State", "Since", "Worker", "Waiting", "Reason"];

const rows = h("tbody");
const says = h("summary");
const box = h(
  "details",
  { class: "workers", hidden: true },
  says,
  h("table", {}, h("thead", {}, h("tr", {}, ...TITLES.map((title) => h("th", { scope: "col" }, title)))), rows),
);

/** Add the box, which is hidden until there are workers. */
export function addWorkers(place) {
  place.append(box);
}

export function showWorkers() {
  const { workers } = store;
  box.hidden = !workers.length;
  const running = workers.filter((each) => each.state === "Running").length;
  const lost = workers.length - running;
  setText(says, lost ? `${number(running)} of ${counted(workers.length, "partition")} run on workers` : `${counted(workers.length, "partition")} on workers`);
  box.dataset.lost = lost ? "some" : "none";
  while (rows.children.length > workers.length) rows.lastElementChild.remove();
  workers.forEach((each, at) => {
    const row = rows.children[at] ?? rows.appendChild(h("tr", {}, ...TITLES.map(() => h("td"))));
    row.dataset.state = each.state;
    const texts = [
      `${each.partition} of ${each.rmID}`,
      each.state.toLowerCase(),
      new Date(each.since / 1e6).toLocaleString(),
      each.address ? `${each.address}, number ${number(each.workerNumber)}` : "none",
      number(each.requestsWaiting),
      each.reason,
    ];
    texts.forEach((text, place) => setText(row.children[place], text));
  });
}
