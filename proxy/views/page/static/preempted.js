// What was preempted last, the newest first: for whom, why, and how much work was lost.

import { link } from "./address.js";
import { h, setText } from "./dom.js";
import { age, clock, counted, resource } from "./format.js";
import { partition } from "./store.js";
import { ask } from "./stream.js";

const REFRESH_MS = 5000;
const SHOWN_MAX = 300;
const CAUSES = {
  GUARANTEE: "for the guarantee of a queue",
  PRIORITY: "for a higher priority",
  REQUIRED_NODE: "for an ask that needs the node",
  QUOTA: "its queue is above its maximum",
};

export function show(view) {
  const says = h("p", { class: "note says", "aria-live": "polite" });
  const empty = h("p", { class: "empty" });
  const list = h("ol", { class: "events", "aria-label": "Preempted allocations, the latest first", tabindex: "0" });
  view.append(h("h1", { class: "visually-hidden" }, "Preempted"), h("div", { class: "tools" }, says), empty, list);
  const asking = new AbortController();
  let timer = 0;

  async function refresh() {
    clearTimeout(timer);
    timer = setTimeout(refresh, REFRESH_MS);
    const known = partition();
    if (known === null) return;
    try {
      draw(await ask("licorne/v1/preemptions", { rm: known.rm, partition: known.name }, asking.signal));
    } catch (error) {
      if (!asking.signal.aborted) setText(says, error.message);
    }
  }

  function draw(found) {
    const lost = found.reduce((sum, each) => sum + each.lostNs / 1e6, 0);
    setText(says, found.length ? `${counted(found.length, "allocation")}, ${age(lost)} of work lost` : "");
    setText(empty, found.length ? "" : "Nothing was preempted.");
    empty.hidden = found.length > 0;
    list.replaceChildren(...found.slice(0, SHOWN_MAX).map(line));
  }

  function line(each) {
    const types = Object.keys(each.resource);
    const size = resource(types, types.map((type) => each.resource[type]));
    const cause = CAUSES[each.cause] ?? each.cause;
    return h(
      "li",
      {},
      h("time", { title: new Date(each.time / 1e6).toLocaleString() }, clock(each.time / 1e6, true)),
      h("span", { class: "kind" }, age(each.lostNs / 1e6)),
      h("span", { class: "object" }, named(each.victimApplicationID), ` · ${each.victimAllocationKey}`),
      h("span", { class: "note" }, `${size} of ${each.victimUser} in ${each.victimQueueName} on ${each.nodeID}, ${cause}`, ...(each.applicationID ? [": ", named(each.applicationID), ` in ${each.queueName}`] : []), `. ${each.reason}`),
    );
  }

  function named(id) {
    return h("a", { href: link("applications", id) }, id);
  }

  refresh();
  return () => {
    clearTimeout(timer);
    asking.abort();
  };
}
