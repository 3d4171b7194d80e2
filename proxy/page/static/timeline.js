// The last hour by queue: what was in use and what waited, a chart a queue.

import { colour, h, setText, sized } from "./dom.js";
import { clock, label, percent, quantity } from "./format.js";
import { QUEUE, has, partition, store, watch } from "./store.js";
import { ask } from "./stream.js";

const HEIGHT = 96;
const REFRESH_MS = 10000;
const SPAN_MIN_MS = 10 * 60 * 1000;
const TICKS_MAX = 8;
/** How wide a point is drawn that has none beside it, in pixels. */
const POINT_WIDTH = 3;

export function show(view) {
  const parent = h("select", { "aria-label": "Queues below" });
  const says = h("p", { class: "note says" });
  const list = h("ul", { class: "charts" });
  view.append(
    h("h1", { class: "visually-hidden" }, "Last hour"),
    h(
      "div",
      { class: "tools" },
      h("label", { class: "field" }, h("span", {}, "Queues below"), parent),
      h("ul", { class: "legend inline", "aria-hidden": "true" }, h("li", { class: "key used" }, h("i", {}), "in use"), h("li", { class: "key pending" }, h("i", {}), "waits"), h("li", { class: "key guaranteed" }, h("i", {}), "guaranteed")),
      says,
    ),
    list,
  );
  const charts = new Map();
  let known = null;
  let colours = readColours();
  const asking = new AbortController();
  let timer = 0;

  function readColours() {
    return { used: colour("--accent"), pending: colour("--warn"), line: colour("--line"), text: colour("--muted"), mark: colour("--text") };
  }

  function fillParents() {
    const paths = Object.entries(partition()?.queues ?? {})
      .filter(([, row]) => !row[QUEUE.leaf])
      .map(([path]) => path)
      .sort();
    if ([...parent.options].map((option) => option.value).join() === paths.join()) return;
    const chosen = parent.value || "root";
    parent.replaceChildren(...paths.map((path) => h("option", { value: path }, path)));
    parent.value = paths.includes(chosen) ? chosen : "root";
  }

  async function refresh() {
    clearTimeout(timer);
    timer = setTimeout(refresh, REFRESH_MS);
    if (!store.name) return;
    try {
      known = await ask("licorne/v1/page/timeline", { partition: store.name, parent: parent.value || "root" }, asking.signal);
    } catch (error) {
      if (!asking.signal.aborted) setText(says, error.message);
      return;
    }
    const first = known.times[0];
    setText(says, first === undefined ? "Nothing is kept yet: a point is added every 10 s." : `since ${clock(first)}`);
    draw();
  }

  function draw() {
    if (!known) return;
    const paths = Object.keys(known.queues);
    for (const [path, chart] of charts) {
      if (!paths.includes(path)) {
        chart.element.remove();
        charts.delete(path);
      }
    }
    for (const path of paths) {
      if (!charts.has(path)) {
        const chart = makeChart(path);
        charts.set(path, chart);
        list.append(chart.element);
      }
      drawChart(path, charts.get(path));
    }
  }

  function makeChart(path) {
    const canvas = h("canvas", { role: "img" });
    const value = h("strong", {});
    const note = h("span", { class: "note" });
    const element = h("li", { class: "chart" }, h("div", { class: "chart-head" }, h("span", { class: "name" }, path), value, note), canvas);
    return { element, canvas, value, note };
  }

  function drawChart(path, chart) {
    const at = known.types.indexOf(store.type);
    const points = known.queues[path];
    const end = Math.max(known.times.at(-1) ?? 0, 1);
    const begin = end - Math.min(known.span, Math.max(SPAN_MIN_MS, end - (known.times[0] ?? end)));
    const usedAt = (point) => (point === null ? null : (point[0][at] ?? 0));
    const waitsAt = (point) => (point === null ? null : (point[1][at] ?? 0));
    const guaranteed = partition()?.queues[path]?.[QUEUE.guaranteed]?.[partition().types.indexOf(store.type)] ?? 0;
    const most = Math.max(1, guaranteed * 1.1, ...points.map((point) => (usedAt(point) ?? 0) + (waitsAt(point) ?? 0)));
    const last = points.at(-1) ?? null;
    setText(chart.value, quantity(store.type, usedAt(last) ?? 0));
    setText(chart.note, waitsAt(last) ? `${quantity(store.type, waitsAt(last))} waits` : guaranteed ? `${percent((usedAt(last) ?? 0) / guaranteed)} of its guarantee` : "");
    chart.canvas.setAttribute("aria-label", `${path}: ${label(store.type)} in the last hour, now ${chart.value.textContent}`);
    const width = Math.max(120, chart.element.clientWidth);
    const context = sized(chart.canvas, width, HEIGHT);
    context.clearRect(0, 0, width, HEIGHT);
    const floor = HEIGHT - 16;
    const x = (time) => ((time - begin) / (end - begin)) * width;
    const y = (value) => floor - (value / most) * (floor - 4);
    axis(context, width, floor, begin, end, x);
    const area = (top, base, fill, alpha) => {
      context.fillStyle = fill;
      context.globalAlpha = alpha;
      context.beginPath();
      let from = -1;
      const close = (to) => {
        if (to === from) context.lineTo(x(known.times[to]) - POINT_WIDTH, y(top(points[to])));
        if (to === from) context.lineTo(x(known.times[to]) - POINT_WIDTH, y(base(points[to])));
        for (let each = to; each >= from; each -= 1) context.lineTo(x(known.times[each]), y(base(points[each])));
        context.closePath();
        from = -1;
      };
      points.forEach((point, each) => {
        if (point === null) {
          if (from >= 0) close(each - 1);
          return;
        }
        if (from < 0) {
          from = each;
          context.moveTo(x(known.times[each]), y(top(point)));
        } else context.lineTo(x(known.times[each]), y(top(point)));
      });
      if (from >= 0) close(points.length - 1);
      context.fill();
      context.globalAlpha = 1;
    };
    area((point) => usedAt(point) + waitsAt(point), usedAt, colours.pending, 0.35);
    area(usedAt, () => 0, colours.used, 0.85);
    if (guaranteed) {
      context.strokeStyle = colours.mark;
      context.setLineDash([4, 4]);
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(0, y(guaranteed));
      context.lineTo(width, y(guaranteed));
      context.stroke();
      context.setLineDash([]);
    }
  }

  function axis(context, width, floor, begin, end, x) {
    context.strokeStyle = colours.line;
    context.fillStyle = colours.text;
    context.lineWidth = 1;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    const minute = 60 * 1000;
    const step = [1, 2, 5, 10].map((each) => each * minute).find((each) => (end - begin) / each <= TICKS_MAX) ?? 15 * minute;
    for (let time = Math.ceil(begin / step) * step; time <= end; time += step) {
      context.beginPath();
      context.moveTo(x(time), 0);
      context.lineTo(x(time), floor);
      context.stroke();
      if (x(time) > 20 && x(time) < width - 20) context.fillText(clock(time), x(time), HEIGHT - 3);
    }
    context.beginPath();
    context.moveTo(0, floor + 0.5);
    context.lineTo(width, floor + 0.5);
    context.stroke();
  }

  parent.addEventListener("change", refresh);
  const resized = new ResizeObserver(() => draw());
  resized.observe(list);
  fillParents();
  refresh();
  const stop = watch((changes) => {
    if (!has(changes, "queues")) return;
    fillParents();
    if (changes !== "all") return;
    colours = readColours();
    if (known === null || !known.queues[parent.value]) refresh();
    else draw();
  });
  return () => {
    stop();
    resized.disconnect();
    clearTimeout(timer);
    asking.abort();
  };
}
