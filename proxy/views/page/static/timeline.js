// The last hour, or more with a history, a chart a queue: above what was in use, below what waited, each by its own scale.

import { link } from "./address.js";
import { colour, h, setText, sized } from "./dom.js";
import { clock, percent, quantity } from "./format.js";
import { QUEUE, ceiling, has, partition, scarcest, store, watch } from "./store.js";
import { ask } from "./stream.js";

const HEIGHT = 148;
/** The lower part, where what waits is drawn by a scale of its own, and the line below it with the times. */
const [WAITS_HEIGHT, TIMES_HEIGHT, GAP] = [36, 16, 14];
const REFRESH_MS = 10000;
const HISTORY_REFRESH_MS = 60000;
const SPAN_MIN_MS = 10 * 60 * 1000;
const TICKS_MAX = 8;
const HOUR_MS = 60 * 60 * 1000;
/** The ranges to choose from: hours, and 0 for the last hour in the finest steps. */
const RANGES = [[0, "Last hour"], [24, "Last day"], [7 * 24, "Last week"], [30 * 24, "Last month"], [365 * 24, "Last year"]];
/** How wide a point is drawn that has none beside it, in pixels. */
const POINT_WIDTH = 3;

export function show(view) {
  const parent = h("select", { "aria-label": "Queues below" });
  const range = h("select", { "aria-label": "Range" }, h("option", { value: "0" }, "Last hour"));
  const says = h("p", { class: "note says" });
  const list = h("ul", { class: "charts" });
  view.append(
    h("h1", { class: "visually-hidden" }, "Over time"),
    h(
      "div",
      { class: "tools" },
      h("label", { class: "field" }, h("span", {}, "Queues below"), parent),
      range,
      h("ul", { class: "legend inline", "aria-hidden": "true" }, h("li", { class: "key used" }, h("i", {}), "in use"), h("li", { class: "key pending" }, h("i", {}), "waiting"), h("li", { class: "key guaranteed" }, h("i", {}), "guaranteed, dashed; maximum, drawn through")),
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

  /** Offer the ranges of which the history of the server has something. */
  function fillRanges(kept) {
    const offered = RANGES.filter(([hours], at) => !hours || kept > (RANGES[at - 1][0] || 1) * HOUR_MS);
    if (range.options.length === offered.length) return;
    const chosen = range.value;
    range.replaceChildren(...offered.map(([hours, text]) => h("option", { value: String(hours) }, text)));
    range.value = offered.some(([hours]) => String(hours) === chosen) ? chosen : "0";
  }

  async function refresh() {
    clearTimeout(timer);
    timer = setTimeout(refresh, range.value === "0" ? REFRESH_MS : HISTORY_REFRESH_MS);
    if (!store.name) return;
    try {
      known = await ask("licorne/v1/page/timeline", { partition: store.name, parent: parent.value || "root", hours: range.value }, asking.signal);
    } catch (error) {
      if (!asking.signal.aborted) setText(says, error.message);
      return;
    }
    fillRanges(known.kept);
    const first = known.times[0];
    setText(says, first === undefined ? "Nothing is kept yet." : `since ${known.span > 12 * HOUR_MS ? new Date(first).toLocaleString() : clock(first)}`);
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
    const element = h("li", { class: "chart" }, h("div", { class: "chart-head" }, h("a", { class: "name", href: link("queues", path) }, path), value, note), canvas);
    const chart = { element, canvas, value, note, pointer: null, place: -1 };
    const point = (x) => {
      chart.pointer = x;
      if (known?.queues[path]) drawChart(path, chart);
    };
    canvas.addEventListener("pointermove", (event) => point(event.offsetX));
    canvas.addEventListener("pointerleave", () => point(null));
    return chart;
  }

  /** Which point is nearest to a place in a chart; -1 without one. */
  function nearest(pointer, points, x) {
    let best = -1;
    for (let each = 0; each < points.length; each += 1) {
      if (points[each] !== null && (best < 0 || Math.abs(x(known.times[each]) - pointer) < Math.abs(x(known.times[best]) - pointer))) best = each;
    }
    return best;
  }

  function drawChart(path, chart) {
    const limits = partition()?.queues[path];
    const place = limits ? scarcest(partition().types, ceiling(partition(), path), limits[QUEUE.allocated], limits[QUEUE.pending], chart.place)[0] : undefined;
    chart.place = place ?? -1;
    const type = partition()?.types[place] ?? store.type;
    const at = known.types.indexOf(type);
    const points = known.queues[path];
    const end = Math.max(known.times.at(-1) ?? 0, 1);
    const begin = end - Math.min(known.span, Math.max(SPAN_MIN_MS, end - (known.times[0] ?? end)));
    const usedAt = (point) => (point === null ? null : (point[0][at] ?? 0));
    const waitsAt = (point) => (point === null ? null : (point[1][at] ?? 0));
    const guaranteed = limits?.[QUEUE.guaranteed]?.[place] ?? 0;
    const maximum = limits?.[QUEUE.maximum]?.[place] ?? null;
    const greatest = (of) => Math.max(0, ...points.map((point) => of(point) ?? 0));
    const scale = Math.max(1, guaranteed, maximum !== null && maximum < greatest(usedAt) * 4 ? maximum : 0, greatest(usedAt)) * 1.3;
    const waitsScale = Math.max(1, greatest(waitsAt)) * 1.5;
    const width = Math.max(120, chart.element.clientWidth);
    const context = sized(chart.canvas, width, HEIGHT);
    context.clearRect(0, 0, width, HEIGHT);
    const bottom = HEIGHT - TIMES_HEIGHT;
    const floor = bottom - WAITS_HEIGHT - GAP;
    const x = (time) => ((time - begin) / (end - begin)) * width;
    const y = (value) => floor - (value / scale) * (floor - 4);
    const waitsY = (value) => bottom - (value / waitsScale) * WAITS_HEIGHT;
    axis(context, width, floor, bottom, begin, end, x);
    const shown = chart.pointer === null ? -1 : nearest(chart.pointer, points, x);
    const point = shown < 0 ? (points.at(-1) ?? null) : points[shown];
    setText(chart.value, `${type} ${quantity(type, usedAt(point) ?? 0)}`);
    const waiting = waitsAt(point) ? `${quantity(type, waitsAt(point))} waiting` : guaranteed ? `${percent((usedAt(point) ?? 0) / guaranteed)} of its guarantee` : "";
    setText(chart.note, shown < 0 ? waiting : [waiting, `at ${clock(known.times[shown], true)}`].filter(Boolean).join(", "));
    chart.canvas.setAttribute("aria-label", `${path}: over time, ${shown < 0 ? "now" : "then"} ${chart.value.textContent}`);
    const area = (top, base, fill, alpha) => {
      context.fillStyle = fill;
      context.globalAlpha = alpha;
      context.beginPath();
      let from = -1;
      const close = (to) => {
        if (to === from) context.lineTo(x(known.times[to]) - POINT_WIDTH, top(points[to]));
        if (to === from) context.lineTo(x(known.times[to]) - POINT_WIDTH, base);
        context.lineTo(x(known.times[to]), base);
        context.lineTo(x(known.times[from]), base);
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
          context.moveTo(x(known.times[each]), top(point));
        } else context.lineTo(x(known.times[each]), top(point));
      });
      if (from >= 0) close(points.length - 1);
      context.fill();
      context.globalAlpha = 1;
    };
    area((each) => waitsY(waitsAt(each)), bottom, colours.pending, 0.6);
    area((each) => y(usedAt(each)), floor, colours.used, 0.85);
    if (guaranteed) level(context, width, y(guaranteed), [4, 4]);
    if (maximum !== null && maximum <= scale) level(context, width, y(maximum), []);
    context.fillStyle = colours.text;
    context.textAlign = "left";
    context.fillText(`${quantity(type, greatest(usedAt))} at most`, 4, 12);
    if (greatest(waitsAt)) context.fillText(`${quantity(type, greatest(waitsAt))} waited at most`, 4, floor + 12);
    if (shown >= 0) {
      context.strokeStyle = colours.mark;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x(known.times[shown]), 0);
      context.lineTo(x(known.times[shown]), bottom);
      context.stroke();
    }
  }

  function level(context, width, at, dash) {
    context.strokeStyle = colours.mark;
    context.setLineDash(dash);
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(0, at);
    context.lineTo(width, at);
    context.stroke();
    context.setLineDash([]);
  }

  function axis(context, width, floor, bottom, begin, end, x) {
    context.strokeStyle = colours.line;
    context.fillStyle = colours.text;
    context.lineWidth = 1;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    const minute = 60 * 1000;
    const steps = [1, 2, 5, 10, 15, 60, 180, 720, 1440, 10080, 43200].map((each) => each * minute);
    const step = steps.find((each) => (end - begin) / each <= TICKS_MAX) ?? 90 * 1440 * minute;
    const text = (time) => (step < 1440 * minute ? clock(time) : new Date(time).toLocaleDateString());
    for (let time = Math.ceil(begin / step) * step; time <= end; time += step) {
      context.beginPath();
      context.moveTo(x(time), 0);
      context.lineTo(x(time), bottom);
      context.stroke();
      if (x(time) > 20 && x(time) < width - 20) context.fillText(text(time), x(time), HEIGHT - 3);
    }
    for (const line of [floor, bottom]) {
      context.beginPath();
      context.moveTo(0, line + 0.5);
      context.lineTo(width, line + 0.5);
      context.stroke();
    }
  }

  parent.addEventListener("change", refresh);
  range.addEventListener("change", refresh);
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
