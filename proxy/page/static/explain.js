// Why an application waits: all reasons at once, each with the line of the configuration behind it.

import { openDetail } from "./detail.js";
import { h } from "./dom.js";
import { counted } from "./format.js";
import { partition } from "./store.js";
import { ask } from "./stream.js";

const REFRESH_MS = 3000;

export function explain(id) {
  const asking = new AbortController();
  let timer = 0;
  let before = "";
  const content = openDetail(id, () => {
    clearTimeout(timer);
    asking.abort();
  });
  content.append(h("p", { class: "empty" }, "asking …"));

  async function refresh() {
    const known = partition();
    try {
      const found = await ask("licorne/v1/explain/sentences", { rm: known.rm, partition: known.name, application: id }, asking.signal);
      const text = JSON.stringify(found);
      if (text !== before) {
        const opened = new Set([...content.querySelectorAll("details[open]")].map((each) => each.dataset.key));
        content.replaceChildren(...parts(found));
        for (const each of content.querySelectorAll("details")) if (opened.has(each.dataset.key)) each.open = true;
        before = text;
      }
    } catch (error) {
      if (asking.signal.aborted) return;
      content.replaceChildren(h("p", { class: "empty" }, error.message));
      before = "";
    }
    timer = setTimeout(refresh, REFRESH_MS);
  }

  refresh();
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
  ].filter((part) => part !== null);
}

function waiting(group) {
  return h(
    "section",
    { class: "ask" },
    h("h4", {}, group.text),
    group.free ? h("p", { class: "reason good" }, "Nothing stands in its way: it is placed when its turn comes.") : null,
    group.reserved ? h("p", {}, `Node ${group.reserved} is reserved for it.`) : null,
    ...group.blockers.map(blocker),
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
    found.loops ? h("p", { class: "reason bad" }, `Preemptions that repeat one that came to nothing: ${found.loops}`) : null,
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
