// Users and groups against their limits: those that are nearest to a limit first.

import { h, setText, setVariable } from "./dom.js";
import { counted, number, percent, quantity, resource } from "./format.js";
import { USAGE, has, partition, watch } from "./store.js";

const SHOWN_MAX = 200;
const REFRESH_MS = 500;

/** A line for each quantity of a holder that is limited in a queue, and one for all it uses. */
function linesOf(types, rows) {
  const found = [];
  for (const row of rows) {
    if (row[USAGE.queue] === "root") found.unshift({ queue: "", name: counted(row[USAGE.applications], "application"), used: null, limit: null, text: () => resource(types, row[USAGE.used]) });
    if (row[USAGE.mean]) found.push({ queue: "", name: `mean use in ${row[USAGE.queue]}, now ${resource(types, row[USAGE.used])}`, used: null, limit: null, text: () => resource(types, row[USAGE.mean]) });
    const limits = row[USAGE.limit];
    types.forEach((type, at) => {
      const limit = limits?.[at] ?? null;
      const used = row[USAGE.used][at] ?? 0;
      if (limit !== null) found.push({ queue: row[USAGE.queue], name: type, used, limit, text: (value) => quantity(type, value) });
    });
    if (row[USAGE.most]) found.push({ queue: row[USAGE.queue], name: "applications", used: row[USAGE.applications], limit: row[USAGE.most], text: number });
  }
  return found;
}

function nearness(lines) {
  return lines.reduce((most, line) => (line.limit === null ? most : Math.max(most, line.limit ? line.used / line.limit : 1)), -1);
}

export function show(view) {
  const filter = h("input", { type: "search", placeholder: "Find users and groups", "aria-label": "Find users and groups", autocomplete: "off" });
  const says = h("p", { class: "note says", "aria-live": "polite" });
  const lists = { users: h("ul", { class: "holders" }), groups: h("ul", { class: "holders" }) };
  const heads = { users: h("h2", {}, "Users"), groups: h("h2", {}, "Groups") };
  view.append(
    h("h1", { class: "visually-hidden" }, "Users and groups"),
    h("div", { class: "tools" }, filter, says),
    h("section", {}, heads.users, lists.users),
    h("section", {}, heads.groups, lists.groups),
  );
  const elements = { users: new Map(), groups: new Map() };
  let timer = 0;

  function draw() {
    clearTimeout(timer);
    timer = 0;
    const known = partition();
    if (known === null) return;
    const text = filter.value.trim().toLowerCase();
    let total = 0;
    for (const kind of ["users", "groups"]) {
      const found = Object.entries(known[kind])
        .filter(([name]) => name.toLowerCase().includes(text))
        .map(([name, rows]) => ({ name, lines: linesOf(known.types, rows) }));
      for (const each of found) each.near = nearness(each.lines);
      found.sort((a, b) => b.near - a.near || (a.name < b.name ? -1 : 1));
      total += found.length;
      place(kind, found.slice(0, SHOWN_MAX));
      setText(heads[kind], `${kind === "users" ? "Users" : "Groups"} · ${number(found.length)}`);
      heads[kind].parentElement.hidden = !found.length;
    }
    setText(says, total ? (total > SHOWN_MAX ? `the ${SHOWN_MAX} nearest to a limit of each are shown` : `${number(total)} ${total === 1 ? "user or group" : "users and groups"}`) : "Nobody has an application, and no limit is configured.");
  }

  function place(kind, found) {
    const known = elements[kind];
    const names = new Set(found.map((each) => each.name));
    for (const [name, holder] of known) {
      if (!names.has(name)) {
        holder.element.remove();
        known.delete(name);
      }
    }
    found.forEach((each, at) => {
      let holder = known.get(each.name);
      if (!holder) {
        holder = makeHolder(each.name);
        known.set(each.name, holder);
      }
      const list = lists[kind];
      if (list.children[at] !== holder.element) list.insertBefore(holder.element, list.children[at] ?? null);
      fillHolder(holder, each.lines);
    });
  }

  function makeHolder(name) {
    const lines = h("ul", { class: "limits" });
    return { element: h("li", { class: "holder" }, h("strong", { class: "name" }, name), lines), lines, rows: [] };
  }

  function fillHolder(holder, lines) {
    while (holder.rows.length > lines.length) holder.rows.pop().element.remove();
    lines.forEach((line, at) => {
      let row = holder.rows[at];
      if (!row) {
        row = { title: h("span", { class: "title" }), bar: h("span", { class: "bar thin" }, h("i", { class: "used" })), share: h("strong", { class: "share" }), note: h("span", { class: "note" }) };
        row.element = h("li", { class: "limit" }, row.title, row.bar, row.share, row.note);
        holder.rows[at] = row;
        holder.lines.append(row.element);
      }
      const share = line.limit === null ? null : line.limit ? line.used / line.limit : 1;
      setText(row.title, line.queue ? `${line.name} in ${line.queue}` : line.text());
      setText(row.share, share === null ? "" : percent(share));
      setText(row.note, line.limit === null ? line.name : `${line.text(line.used)} of ${line.text(line.limit)}`);
      row.element.classList.toggle("free", line.limit === null);
      row.element.classList.toggle("reached", share !== null && share >= 1);
      setVariable(row.bar, "--used", Math.min(1, share ?? 0).toFixed(4));
    });
  }

  filter.addEventListener("input", draw);
  draw();
  const stop = watch((changes) => {
    if (!has(changes, "users", "groups")) return;
    if (changes === "all") draw();
    else if (!timer) timer = setTimeout(draw, REFRESH_MS);
  });
  return () => {
    stop();
    clearTimeout(timer);
  };
}
