// The graph of the locks of the engine `threads`: the declared order, and what was observed of it.

import { h, svg } from "./dom.js";
import { counted, number } from "./format.js";
import { store } from "./store.js";
import { ask } from "./stream.js";

const [WIDTH, HEIGHT, BOX_WIDTH, BOX_HEIGHT] = [176, 92, 140, 40];
const REFRESH_MS = 5000;
const FIRST_DATA_MS = 100;

export function show(view) {
  const content = h("div", { class: "locks" }, h("p", { class: "empty" }, "asking …"));
  view.append(h("h1", { class: "visually-hidden" }, "Locks"), content);
  const asking = new AbortController();
  let timer = 0;
  let before = "";

  async function refresh() {
    if (store.engine !== "threads") {
      // An error would be of no use, and would stand in the console.
      content.replaceChildren(h("p", { class: "empty" }, store.engine
        ? `The engine ${store.engine} has no locks in its partitions: the lock graph is of the engine threads.`
        : "asking …"));
      timer = setTimeout(refresh, store.engine ? REFRESH_MS : FIRST_DATA_MS);
      return;
    }
    try {
      const found = await ask("licorne/v1/locks", {}, asking.signal);
      const text = JSON.stringify(found);
      if (text !== before) content.replaceChildren(...parts(found));
      before = text;
    } catch (error) {
      if (asking.signal.aborted) return;
      before = "";
      content.replaceChildren(h("p", { class: "empty" }, error.message));
    }
    timer = setTimeout(refresh, REFRESH_MS);
  }

  refresh();
  return () => {
    clearTimeout(timer);
    asking.abort();
  };
}

function parts(found) {
  const observed = new Map((found.observed ?? []).map(([held, wanted, count]) => [`${held} ${wanted}`, count]));
  const declared = new Set(found.declared.map(([held, wanted]) => `${held} ${wanted}`));
  const drawn = [...found.declared.map(([held, wanted]) => [held, wanted, observed.get(`${held} ${wanted}`) ?? 0, true])];
  for (const [held, wanted, count] of found.observed ?? []) {
    if (!declared.has(`${held} ${wanted}`)) drawn.push([held, wanted, count, false]);
  }
  const words = found.observed === null
    ? "An arrow leads from a lock to those that may be taken while it is held. Start the server with LOCKCHECK=full to see what is really taken."
    : `An arrow leads from a lock to those that may be taken while it is held. ${counted(found.observed.length, "edge")} observed: these are thick, with how often.`;
  return [
    h("p", { class: "note" }, words),
    h("div", { class: "graph-frame", tabindex: "0", role: "region", "aria-label": "Lock graph, scrolls" }, graph(found.classes, drawn)),
    h("details", {}, h("summary", {}, "The same as a list"), h("ul", { class: "lines" }, drawn.map(([held, wanted, count]) => h("li", {}, `${held} before ${wanted}${count ? `, observed ${number(count)} times` : ""}`)))),
  ];
}

/** The row of each class: below all that are taken before it. */
function rowsOf(classes, edges) {
  const rows = new Map(classes.map((each) => [each.name, 0]));
  for (let round = 0; round < classes.length; round += 1) {
    let moved = false;
    for (const [held, wanted] of edges) {
      if (rows.get(wanted) <= rows.get(held) && rows.get(held) + 1 < classes.length) {
        rows.set(wanted, rows.get(held) + 1);
        moved = true;
      }
    }
    if (!moved) break;
  }
  return rows;
}

function graph(classes, drawn) {
  const rows = rowsOf(classes, drawn.filter(([, , , isDeclared]) => isDeclared));
  const columns = new Map();
  const places = new Map();
  for (const { name } of classes) {
    const row = rows.get(name);
    const column = columns.get(row) ?? 0;
    columns.set(row, column + 1);
    places.set(name, [20 + column * WIDTH, 20 + row * HEIGHT]);
  }
  const width = Math.max(...columns.values()) * WIDTH + 20;
  const height = (Math.max(...rows.values()) + 1) * HEIGHT;
  const arrows = drawn.map(([held, wanted, count, isDeclared]) => {
    const [x1, y1] = places.get(held);
    const [x2, y2] = places.get(wanted);
    const [fromX, fromY, toX, toY] = [x1 + BOX_WIDTH / 2, y1 + BOX_HEIGHT, x2 + BOX_WIDTH / 2, y2];
    const bend = Math.max(24, (toY - fromY) / 2);
    const kind = `edge${count ? " observed" : ""}${isDeclared ? "" : " undeclared"}`;
    const path = svg("path", { class: kind, d: `M${fromX} ${fromY} C${fromX} ${fromY + bend} ${toX} ${toY - bend} ${toX} ${toY - 4}`, "marker-end": "url(#tip)" });
    return count ? svg("g", {}, path, svg("text", { class: "count", x: (fromX + toX) / 2 + 6, y: (fromY + toY) / 2 }, number(count))) : path;
  });
  const boxes = classes.map(({ name, leaf }) => {
    const [x, y] = places.get(name);
    return svg(
      "g",
      { class: leaf ? "lock leaf" : "lock" },
      svg("rect", { x, y, width: BOX_WIDTH, height: BOX_HEIGHT, rx: 10 }),
      svg("text", { x: x + BOX_WIDTH / 2, y: y + BOX_HEIGHT / 2 + 5 }, name),
    );
  });
  const tip = svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0 8 4 0 8z" }));
  return svg("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "The order in which locks are taken" }, svg("defs", {}, tip), ...arrows, ...boxes);
}
