// The panel of an application: why it waits, all reasons at once, each with the line of the configuration
// behind it; then what it has and has been through.

import { h } from "./dom.js";
import { age, clock, counted, quantities } from "./format.js";
import { facts, folded, named, openPanel } from "./panel.js";
import { now, partition, store } from "./store.js";
import { ask } from "./stream.js";

export function openApplication(id) {
  const known = partition();
  const of = { rm: known.rm, partition: known.name, application: id };
  const where = `ws/v1/partition/${encodeURIComponent(store.name)}/application/${encodeURIComponent(id)}`;
  openPanel(id, async (signal) => {
    const found = await ask("licorne/v1/explain/sentences", of, signal);
    const isActive = partition()?.applications[id] !== undefined; // Of others nothing but what has become of them is known.
    return { ...found, whole: isActive ? await ask(where, {}, signal) : null };
  }, parts);
}

function parts(found) {
  const nothing = !found.waiting.length && !found.blockers.length && !found.rejection;
  return [
    h("p", { class: "headline" }, found.headline),
    found.rejection ? h("p", { class: "reason bad" }, `Rejected: ${found.rejection}`) : null,
    found.rules.length ? lines("rules", "What the placement rules answered", found.rules, true) : null,
    found.draining ? h("p", { class: "note" }, "Its queue is draining: what it has goes on, nothing new comes in.") : null,
    h("h3", {}, "Why it waits"),
    nothing ? h("p", { class: "empty" }, "Nothing of it waits.") : null,
    ...found.blockers.map(blocker),
    ...found.waiting.map(waiting),
    found.more ? h("p", { class: "note" }, `and ${counted(found.more, "group")} of asks more`) : null,
    ...victims(found.victims ?? []),
    ...preemptions(found),
    found.places.length ? lines("places", "Its place in the orders", found.places, false) : null,
    found.others.length ? lines("others", "What does not wait", found.others.map((text) => ({ text })), false) : null,
    ...whole(found.whole),
  ];
}

/** What the application has: its use, its gang, its allocations, and the states that it was in. */
function whole(application) {
  if (!application) return [];
  const states = application.stateLog ?? [];
  const held = application.allocations ?? [];
  const gang = application.placeholderData ?? [];
  return [
    h("h3", {}, "What it has"),
    facts([
      ["Queue", named("queues", application.queueName)],
      ["User", [application.user, ...(application.groups ?? [])].join(", ")],
      ["In use", quantities(application.usedResource)],
      ["At most", quantities(application.maxUsedResource)],
      ["Waits", quantities(application.pendingResource)],
    ]),
    folded("gang", "Its gang", gang, (each) => `${each.taskGroupName}: ${each.count ?? 0} placeholders of ${quantities(each.minResource)}, ${each.replaced ?? 0} replaced, ${each.timedout ?? 0} timed out`),
    folded("allocations", counted(held.length, "allocation"), held, (each) => [
      h("strong", {}, each.allocationKey),
      " on ",
      named("nodes", each.nodeId),
      h("span", { class: "note" }, [quantities(each.resource), `for ${age(now() - each.allocationTime / 1e6)}`, each.placeholder ? "placeholder" : "", each.preempted ? "being preempted" : ""].filter(Boolean).join(" · ")),
    ]),
    folded("states", "Its states", states, (each) => `${clock(each.time / 1e6, true)} ${each.applicationState}`),
  ];
}

function waiting(group) {
  return h(
    "section",
    { class: "ask" },
    h("h4", {}, group.text),
    h("p", { class: group.free ? "reason good" : "reason" }, `${sentence(group.sentence)}.`),
    group.reserved ? h("p", {}, `Node ${group.reserved} is reserved for it.`) : null,
    group.ending ? h("p", { class: "reason" }, `${sentence(group.ending)}.`) : null,
    ...group.blockers.map(blocker),
    group.start ? h("p", { class: "start" }, `${sentence(group.start)}.`) : null,
    group.nodes.length || group.noted.length
      ? h("ul", { class: "lines small" }, [...group.nodes, ...group.noted].map((text) => h("li", {}, text)))
      : null,
  );
}

function blocker(each) {
  return h(
    "div",
    { class: "reason" },
    h("strong", {}, sentence(each.text)),
    setting(each.setting),
    ...each.lacks.flatMap((lack) => [h("p", { class: "lack" }, lack.text), setting(lack.setting)]),
    ...each.changes.map((text) => h("p", { class: "change" }, h("span", {}, "To change: "), text)),
  );
}

/** The line of the configuration, with its number. */
function setting(line) {
  if (!line) return null;
  return h(
    "p",
    { class: "setting", title: `${line.path} in line ${line.line}, column ${line.column} of the configuration` },
    h("span", { class: "line-number" }, `line ${line.line}`),
    h("code", {}, line.text),
  );
}

function victims(list) {
  if (!list.length) return [];
  return [
    h("h3", {}, "Who would be preempted for it"),
    ...list.map((each) =>
      h(
        "section",
        { class: "ask" },
        h("h4", {}, each.text),
        each.victims.length ? h("p", { class: "note" }, each.why) : null,
        each.victims.length
          ? h("ul", { class: "lines" }, each.victims.map((victim) => h("li", {}, h("strong", {}, victim.title), h("span", { class: "note" }, victim.why))))
          : h("p", { class: "note" }, sentence(each.why)),
      ),
    ),
  ];
}

function preemptions(found) {
  if (!found.preemptions.length && !found.loops) return [];
  return [
    h("h3", {}, "Preemptions it took part in"),
    ...found.preemptions.map((each) =>
      h("section", { class: "ask" }, h("h4", {}, sentence(each.text)), h("ul", { class: "lines small" }, each.lines.map((text) => h("li", {}, text)))),
    ),
    found.loops ? h("p", { class: "reason bad" }, `Preemptions that repeat one without result: ${found.loops}`) : null,
  ].filter((part) => part !== null);
}

function lines(key, title, list, open) {
  return h(
    "details",
    { "data-key": key, open },
    h("summary", {}, title),
    h("ul", { class: "lines" }, list.map((each) => h("li", {}, each.text, setting(each.setting ?? null)))),
  );
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
