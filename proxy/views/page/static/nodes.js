// The nodes as a heat map, with the detail of the one that is chosen.

import { go } from "./address.js";
import { closeDetail } from "./detail.js";
import { h, setText } from "./dom.js";
import { counted, natural, number, percent, quantity } from "./format.js";
import { HeatMap } from "./heatmap.js";
import { addNodesOut, outText } from "./nodes_out.js";
import { facts, named, openPanel } from "./panel.js";
import { NODE, RESERVED, SCHEDULABLE, has, partition, scarcest, watch } from "./store.js";
import { ask } from "./stream.js";

/** The resource type that a node shows, and its share in use. */
function useOf(row) {
  const capacity = row[NODE.capacity] ?? [];
  const used = capacity.map((whole, at) => (whole ?? 0) - (row[NODE.available]?.[at] ?? 0));
  const [at = -1] = scarcest(partition().types, capacity, used);
  return { at, share: capacity[at] ? used[at] / capacity[at] : 0 };
}

export function show(view) {
  const canvas = h("canvas", {
    class: "heat",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "heat map",
    "aria-label": "Nodes by use. Move with the arrow keys, open with Enter.",
    "aria-describedby": "heat-says",
  });
  const says = h("p", { id: "heat-says", class: "note says", "aria-live": "polite" });
  const filter = h("input", { type: "search", placeholder: "Find nodes", "aria-label": "Find nodes", autocomplete: "off" });
  const order = h(
    "select",
    { "aria-label": "Order" },
    h("option", { value: "name" }, "by name"),
    h("option", { value: "use" }, "the fullest first"),
  );
  const tip = h("div", { class: "tip", hidden: true });
  const frame = h("div", { class: "heat-frame" }, canvas, tip);
  const scale = h("div", { class: "scale", "aria-hidden": "true" }, "empty", h("i", {}), "full", h("span", { class: "mark closed" }), "cordoned", h("span", { class: "mark reserved" }), "reserved");
  view.append(h("h1", { class: "visually-hidden" }, "Nodes"), h("div", { class: "tools" }, filter, order, says), frame, scale);

  const drawOut = addNodesOut(view);
  const map = new HeatMap(canvas);
  let chosen = "";
  let count = -1;
  let keys = new Map();

  function read(id) {
    const row = partition().nodes[id];
    const flags = row[NODE.flags];
    return {
      id,
      share: useOf(row).share,
      closed: !(flags & SCHEDULABLE),
      reserved: Boolean(flags & RESERVED),
      dim: fades(id),
    };
  }

  function fades(id) {
    const text = filter.value.trim().toLowerCase();
    return text !== "" && !id.toLowerCase().includes(text);
  }

  function lay() {
    const known = partition();
    const ids = Object.keys(known?.nodes ?? {});
    count = ids.length;
    keys = new Map(ids.map((id) => [id, keys.get(id) ?? natural(id)]));
    ids.sort((a, b) => (keys.get(a) < keys.get(b) ? -1 : 1));
    const nodes = ids.map(read);
    if (order.value === "use") nodes.sort((a, b) => b.share - a.share);
    map.selected = nodes.findIndex((node) => node.id === chosen);
    map.lay(nodes, Math.max(200, frame.clientWidth));
    say();
    drawOut();
  }

  function say() {
    const node = map.nodes[map.selected];
    const matching = map.nodes.reduce((sum, each) => sum + !each.dim, 0);
    setText(says, node ? described(node) : `${counted(matching, "node")}${matching < count ? ` of ${number(count)}` : ""}`);
  }

  function described(node) {
    const row = partition()?.nodes[node.id];
    if (!row) return `${node.id} is gone`;
    const { at, share } = useOf(row);
    const type = partition().types[at];
    const use = type ? `${percent(share)} of ${type} in use, ${quantity(type, row[NODE.available]?.[at] ?? 0)} left` : "empty";
    return [`${node.id}: ${use}`, node.closed ? outText(row) : "", node.reserved ? "reserved" : ""].filter(Boolean).join(", ");
  }

  function choose(at) {
    if (at < 0 || at >= map.nodes.length) return;
    map.select(at);
    chosen = map.nodes[at].id;
    say();
    const { y } = map.position(at);
    const box = view.getBoundingClientRect();
    const top = canvas.getBoundingClientRect().top + y;
    if (top < box.top + 8) view.scrollBy(0, top - box.top - 60);
    else if (top + map.size > box.bottom - 8) view.scrollBy(0, top + map.size - box.bottom + 60);
  }

  canvas.addEventListener("keydown", (event) => {
    const at = Math.max(0, map.selected);
    const moves = {
      ArrowRight: at + (map.selected >= 0 ? 1 : 0),
      ArrowLeft: at - 1,
      ArrowDown: at + map.columns,
      ArrowUp: at - map.columns,
      Home: 0,
      End: map.nodes.length - 1,
    };
    if (event.key in moves) {
      event.preventDefault();
      choose(Math.max(0, Math.min(map.nodes.length - 1, moves[event.key])));
    } else if ((event.key === "Enter" || event.key === " ") && map.nodes[map.selected]) {
      event.preventDefault();
      go("nodes", map.nodes[map.selected].id, true);
    }
  });
  canvas.addEventListener("click", (event) => {
    const at = map.at(event.offsetX, event.offsetY);
    if (at < 0) return;
    choose(at);
    go("nodes", map.nodes[at].id);
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = map.at(event.offsetX, event.offsetY);
    tip.hidden = at < 0;
    if (at < 0) return;
    setText(tip, described(map.nodes[at]));
    const left = Math.min(event.offsetX + 14, frame.clientWidth - tip.offsetWidth - 4);
    tip.style.transform = `translate(${Math.max(0, left)}px, ${event.offsetY + 18}px)`;
  });
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });
  filter.addEventListener("input", () => {
    map.nodes.forEach((node, at) => {
      const isDim = fades(node.id);
      if (isDim === node.dim) return;
      node.dim = isDim;
      map.draw(at);
    });
    say();
  });
  order.addEventListener("change", lay);
  const resized = new ResizeObserver(() => lay());
  resized.observe(frame); // It is told of the first size, too: that lays the nodes out.
  const stop = watch((changes) => {
    if (!has(changes, "nodes")) return;
    if (changes === "all") map.readColours();
    const known = partition()?.nodes ?? {};
    if (changes === "all" || [...changes.nodes].some((id) => !map.places.has(id) || !known[id])) {
      lay();
      return;
    }
    for (const id of changes.nodes) {
      const at = map.places.get(id);
      map.nodes[at] = read(id);
      map.draw(at);
    }
    if (chosen && changes.nodes.has(chosen)) say();
    drawOut();
  });
  return () => {
    stop();
    resized.disconnect();
    closeDetail();
  };
}

// ------------------------------------------------------------------------------------------- the detail

export function openNode(id) {
  const known = partition();
  openPanel(id, (signal) => ask("licorne/v1/page/node", { rm: known.rm, partition: known.name, node: id }, signal), nodeParts);
}

function nodeParts(node) {
  const known = [
    ["State", node.schedulable ? "takes work" : "cordoned"],
    ["Capacity", node.capacity],
    ["In use", node.allocated],
    ["Used by others", node.occupied],
    ["Left", node.available],
    ...(node.reservations.length ? [["Reserved for", node.reservations.join(", ")]] : []),
    ...Object.entries(node.attributes),
  ];
  return [
    facts(known),
    h("h3", {}, counted(node.allocationsTotal, "allocation")),
    allocations(node.allocations),
    ...(node.foreignTotal ? [h("h3", {}, counted(node.foreignTotal, "foreign allocation")), allocations(node.foreign)] : []),
  ];
}

function allocations(list) {
  if (!list.length) return h("p", { class: "empty" }, "Nothing runs here.");
  return h(
    "ul",
    { class: "lines" },
    list.map((each) =>
      h("li", {}, h("strong", {}, each.allocationKey), h("span", { class: "note" }, named("applications", each.applicationID), ` ${[each.resource, each.placeholder ? "placeholder" : ""].filter(Boolean).join(" · ")}`)),
    ),
  );
}
