// The policies that the program has given, what they have answered, and which fail; nothing where none are given.

import { foldedTable } from "./folded.js";
import { number } from "./format.js";
import { now, store } from "./store.js";
import { ask } from "./stream.js";

const table = foldedTable("policies", ["Policy", "Class", "Answers", "Failures", "Mean", "Longest", "Last failure"]);
const REFRESH_MS = 5000;
/** A failure is recent for so long. */
const RECENT_MS = 60000;

let timer = null;

/** Add the box, which is hidden until there are policies. */
export function addPolicies(place) {
  place.append(table.box);
}

/** Ask for them while the page is live. */
export function showPolicies() {
  if (store.state === "live") timer ??= setTimeout(refresh, 0);
  else {
    clearTimeout(timer);
    timer = null;
  }
}

async function refresh() {
  let again = true;
  try {
    const found = await ask("ws/v1/policies");
    draw(found);
    again = found.length > 0 || store.workers.length > 0; // None comes later, but with a worker.
  } catch {
    // The connection says what is wrong; they are asked for again.
  }
  if (!again || timer === null) return;
  clearTimeout(timer); // Of a connection that has come meanwhile.
  timer = setTimeout(refresh, REFRESH_MS);
}

function draw(found) {
  const failing = found.filter(isFailing).map((each) => each.name);
  const given = found.length === 1 ? "1 policy" : `${number(found.length)} policies`;
  const said = failing.length ? `Policies that fail: ${failing.join(", ")}` : given;
  table.fill(said, failing.length > 0, found.map((each) => [isFailing(each) ? "Failing" : "Running", [
    each.name,
    each.version ? `${each.madeOf} ${each.version}` : each.madeOf,
    number(each.answers),
    number(each.failures),
    `${number(each.meanNs / 1000)} µs`,
    `${number(each.longestNs / 1000)} µs`,
    failure(each.lastFailure),
  ]]));
}

function failure(last) {
  return last ? `${last.method} about ${last.subject}, ${new Date(last.at / 1e6).toLocaleString()}: ${last.error}` : "";
}

function isFailing(policy) {
  return policy.lastFailure !== undefined && policy.lastFailure.at / 1e6 > now() - RECENT_MS;
}
