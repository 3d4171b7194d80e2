// Live events, where the server has them.

import { choices, h, setText } from "./dom.js";
import { CHANGES, DETAILS, TYPES } from "./event_words.js"; // The server makes it.
import { clock, counted } from "./format.js";
import { store, watch } from "./store.js";
import { listen } from "./stream.js";

const HISTORY = 200;
const KEPT_MAX = 1000;
const SHOWN_MAX = 300;
const WORDS = {
  connecting: "connecting …",
  live: "",
  waiting: "The stream broke; it is tried again.",
  absent: "This server has no stream of events.",
  refused: "This server requires a token for events.",
};

export function show(view) {
  const filter = h("input", { type: "search", placeholder: "Find in events", "aria-label": "Find in events", autocomplete: "off" });
  const kinds = choices("kind", "Which events", [["", "All"], ...Object.values(TYPES).map((kind) => [kind, kind])]);
  const held = h("button", { class: "button", type: "button", "aria-pressed": "false" }, "Hold");
  const says = h("p", { class: "note says", "aria-live": "polite" });
  const list = h("ol", { class: "events", "aria-label": "Events, the latest first", tabindex: "0" });
  const empty = h("p", { class: "empty" });
  view.append(h("h1", { class: "visually-hidden" }, "Events"), h("div", { class: "tools" }, filter, kinds, held, says), empty, list);
  const events = [];
  let state = "connecting";
  let scheduled = false;
  let isHeld = false;
  let kind = "";

  function text(event) {
    const kind = TYPES[event.type] ?? String(event.type ?? "");
    const word = CHANGES[event.eventChangeType] ?? "";
    const change = event.eventChangeDetail ? (DETAILS[event.eventChangeDetail] ?? String(event.eventChangeDetail)).replace("{}", word) : word;
    return { kind, change, object: [event.objectID, event.referenceID].filter(Boolean).join(" · "), message: event.message ?? "" };
  }

  function draw() {
    scheduled = false;
    if (isHeld) return;
    const wanted = filter.value.trim().toLowerCase();
    const found = events.filter((each) => each.search.includes(wanted) && (kind === "" || each.kind === kind));
    setText(says, `${counted(found.length, "event")}${events.length === KEPT_MAX ? ", the latest" : ""}`);
    const why = WORDS[state] ?? "";
    setText(empty, why || (found.length ? "" : "Nothing has happened yet."));
    empty.hidden = !empty.textContent;
    list.replaceChildren(
      ...found.slice(-SHOWN_MAX).reverse().map((each) =>
        h("li", {}, h("time", {}, clock(each.time, true)), h("span", { class: "kind" }, each.kind), h("span", { class: "object" }, each.object), h("span", { class: "note" }, [each.change, each.message].filter(Boolean).join(": "))),
      ),
    );
  }

  function later() {
    if (scheduled) return;
    scheduled = true;
    setTimeout(() => requestAnimationFrame(draw), 200);
  }

  let stop = null;
  const start = () => {
    if (stop !== null || store.events === null) return;
    if (!store.events) {
      state = "absent";
      draw();
      stop = () => {};
      return;
    }
    stop = listen(`licorne/v1/events?count=${HISTORY}`, { onEvent, onState });
  };

  function onEvent(kind, event) {
    if (kind === "instance") return;
    const shown = text(event);
    const time = Number(event.timestampNano ?? 0) / 1e6 || Date.now();
    events.push({ ...shown, time, search: Object.values(shown).join(" ").toLowerCase() });
    if (events.length > KEPT_MAX) events.splice(0, events.length - KEPT_MAX);
    later();
  }

  function onState(now) {
    state = now;
    later();
  }

  filter.addEventListener("input", draw);
  kinds.addEventListener("change", (event) => {
    kind = event.target.value;
    draw();
  });
  held.addEventListener("click", () => {
    isHeld = !isHeld;
    held.setAttribute("aria-pressed", String(isHeld));
    setText(held, isHeld ? "Go on" : "Hold");
    draw();
  });
  draw();
  const unwatch = watch(start);
  start();
  return () => {
    unwatch();
    stop?.();
  };
}
