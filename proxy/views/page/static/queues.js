// The queue tree: how much each queue uses, wants, is guaranteed and may have, as bars.

import { go } from "./address.js";
import { h, setText, setVariable } from "./dom.js";
import { number, percent, quantity } from "./format.js";
import { QUEUE, ceiling, has, partition, scarcest, watch } from "./store.js";

const OPEN_DEPTH = 2;
/** How many resource types a queue shows, the scarcest first. */
const MEASURES = 2;
const LEGEND = [
  ["used", "in use"],
  ["pending", "waiting"],
  ["guaranteed", "guaranteed"],
  ["maximum", "maximum: the whole bar"],
];

export function show(view) {
  const tree = h("ul", { class: "tree", role: "tree", "aria-label": "Queues" });
  const rows = new Map();
  const open = new Map();
  view.append(
    h("h1", { class: "visually-hidden" }, "Queues"),
    h("ul", { class: "legend", "aria-label": "Legend" }, LEGEND.map(([kind, text]) => h("li", { class: `key ${kind}` }, h("i", {}), text))),
    tree,
  );
  let focused = "root";

  function isOpen(path) {
    return open.get(path) ?? path.split(".").length < OPEN_DEPTH + 1;
  }

  function build() {
    const known = partition();
    rows.clear();
    tree.replaceChildren();
    if (known === null) return;
    const children = new Map();
    for (const path of Object.keys(known.queues).sort()) {
      const parent = path.slice(0, Math.max(0, path.lastIndexOf(".")));
      if (!children.has(parent)) children.set(parent, []);
      children.get(parent).push(path);
    }
    const walk = (path, level) => {
      const below = children.get(path) ?? [];
      const row = makeRow(path, level, below.length > 0);
      rows.set(path, row);
      tree.append(row.element);
      if (below.length && isOpen(path)) for (const child of below) walk(child, level + 1);
    };
    for (const root of children.get("") ?? []) walk(root, 1);
    if (!rows.has(focused)) focused = rows.keys().next().value ?? "root";
    rows.get(focused)?.element.setAttribute("tabindex", "0");
    update(null);
  }

  function makeRow(path, level, isParent) {
    const name = path.slice(path.lastIndexOf(".") + 1);
    const parts = {
      note: h("span", { class: "note" }),
      measures: Array.from({ length: MEASURES }, makeMeasure),
      at: -1,
      isParent,
    };
    const twist = h("span", { class: "twist", "aria-hidden": "true" }, isParent ? "▸" : "");
    parts.element = h(
      "li",
      {
        class: "queue",
        role: "treeitem",
        tabindex: "-1",
        "aria-level": level,
        "aria-expanded": isParent ? String(isOpen(path)) : null,
        "data-path": path,
      },
      h("div", { class: "queue-name" }, twist, h("span", { class: "name opens", title: path }, name), parts.note),
      h("div", { class: "measures" }, parts.measures.map((each) => each.element)),
    );
    setVariable(parts.element, "--level", level - 1);
    parts.element.addEventListener("click", (event) => {
      focus(path);
      if (isParent && !event.target.closest(".opens")) toggle(path, !isOpen(path));
      else go("queues", path);
    });
    return parts;
  }

  function update(paths) {
    const known = partition();
    for (const [path, row] of rows) {
      const queue = known?.queues[path];
      if (!queue || (paths && !paths.has(path))) continue;
      const most = ceiling(known, path);
      const places = scarcest(known.types, most, queue[QUEUE.allocated], queue[QUEUE.pending], row.at);
      row.at = places[0] ?? -1;
      row.measures.forEach((measure, each) => fillMeasure(measure, known.types, queue, most, places[each]));
      const running = queue[QUEUE.most] ? `${number(queue[QUEUE.running])} of ${number(queue[QUEUE.most])} run` : queue[QUEUE.running] ? `${number(queue[QUEUE.running])} run` : "";
      const state = queue[QUEUE.state] === "Active" ? "" : queue[QUEUE.state].toLowerCase();
      setText(row.note, [running, queue[QUEUE.managed] ? "" : "dynamic", state].filter(Boolean).join(" · "));
      const shown = row.measures.filter((measure) => !measure.element.hidden);
      row.element.setAttribute("aria-label", `${path}: ${shown.map((measure) => `${measure.share.textContent} in use, ${measure.figures.textContent}`).join("; ")}`);
    }
  }

  function toggle(path, to) {
    open.set(path, to);
    build();
    focus(path);
  }

  function focus(path) {
    const row = rows.get(path);
    if (!row) return;
    rows.get(focused)?.element.setAttribute("tabindex", "-1");
    focused = path;
    row.element.setAttribute("tabindex", "0");
    row.element.focus();
    row.element.scrollIntoView({ block: "nearest" });
  }

  tree.addEventListener("keydown", (event) => {
    const paths = [...rows.keys()];
    const at = paths.indexOf(focused);
    const row = rows.get(focused);
    const parent = focused.slice(0, Math.max(0, focused.lastIndexOf(".")));
    const moves = {
      ArrowDown: () => focus(paths[at + 1]),
      ArrowUp: () => focus(paths[at - 1]),
      Home: () => focus(paths[0]),
      End: () => focus(paths[paths.length - 1]),
      ArrowRight: () => (row?.isParent && !isOpen(focused) ? toggle(focused, true) : focus(paths[at + 1])),
      ArrowLeft: () => (row?.isParent && isOpen(focused) ? toggle(focused, false) : focus(parent)),
      Enter: () => go("queues", focused, true),
      " ": () => row?.isParent && toggle(focused, !isOpen(focused)),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
  });

  build();
  let paths = Object.keys(partition()?.queues ?? {}).length;
  return watch((changes) => {
    if (!has(changes, "queues")) return;
    const count = Object.keys(partition()?.queues ?? {}).length;
    const gone = changes === "all" || [...changes.queues].some((path) => !partition()?.queues[path] || (count !== paths && !rows.has(path)));
    paths = count;
    if (gone) {
      const had = tree.contains(document.activeElement);
      build();
      if (had) focus(focused);
    } else update(changesAbove(changes.queues));
  });

  /** A changed maximum changes all bars below it: update all, they are few that are shown. */
  function changesAbove(changed) {
    return [...changed].some((path) => rows.get(path)?.isParent) ? null : changed;
  }
}

/** A bar of one resource type, with its share and its figures. */
function makeMeasure() {
  const parts = {
    bar: h("span", { class: "bar" }, h("i", { class: "used" }), h("i", { class: "pending" }), h("i", { class: "guaranteed" })),
    share: h("strong", { class: "share" }),
    figures: h("span", { class: "note figures" }),
  };
  parts.element = h("div", { class: "measure" }, parts.bar, parts.share, parts.figures);
  return parts;
}

function fillMeasure({ element, bar, share, figures }, types, queue, ceilings, at) {
  element.hidden = at === undefined;
  if (element.hidden) return;
  const type = types[at];
  const most = ceilings[at] ?? 0;
  const [used, waits, guaranteed, mean] = [QUEUE.allocated, QUEUE.pending, QUEUE.guaranteed, QUEUE.mean].map((column) => queue[column]?.[at] ?? 0);
  const part = (value) => (most ? Math.min(1, value / most).toFixed(4) : value ? 1 : 0);
  setVariable(bar, "--used", part(used));
  setVariable(bar, "--pending", part(waits));
  setVariable(bar, "--guaranteed", part(guaranteed));
  bar.classList.toggle("has-guaranteed", guaranteed > 0);
  bar.classList.toggle("overflows", used + waits > most);
  setText(share, percent(most ? used / most : used ? 1 : 0));
  const texts = [
    `${type} ${quantity(type, used)} of ${quantity(type, most)}`,
    waits ? `${quantity(type, waits)} waiting` : "",
    guaranteed ? `${quantity(type, guaranteed)} guaranteed` : "",
    mean ? `mean use ${quantity(type, mean)}` : "",
  ];
  setText(figures, texts.filter(Boolean).join(" · "));
}
