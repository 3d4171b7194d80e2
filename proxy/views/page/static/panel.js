// Panels that are read again and again: of an application, a queue, a node.

import { link } from "./address.js";
import { openDetail } from "./detail.js";
import { h } from "./dom.js";

const REFRESH_MS = 3000;
const SHOWN_MAX = 200;

/**
 * Open a panel. `read(signal)` returns what the server says, `parts(found)` the elements for it; sections that
 * are open stay open.
 */
export function openPanel(title, read, parts) {
  const asking = new AbortController();
  let timer = 0;
  let before = "";
  const content = openDetail(title, () => {
    clearTimeout(timer);
    asking.abort();
  });
  content.append(h("p", { class: "empty" }, "asking …"));

  async function refresh() {
    try {
      const found = await read(asking.signal);
      const text = JSON.stringify(found);
      if (text !== before) {
        const opened = new Set([...content.querySelectorAll("details[open]")].map((each) => each.dataset.key));
        content.replaceChildren(...parts(found).filter((part) => part !== null));
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

/** Names with texts or elements; those without a text are left out. */
export function facts(list) {
  return h("dl", { class: "facts" }, list.filter(([, text]) => text).flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
}

/** The name of a thing that has a panel. */
export function named(view, id) {
  return id ? h("a", { href: link(view, id) }, id) : "";
}

/** A section that is folded; nothing for an empty list. */
export function folded(key, title, list, line) {
  if (!list.length) return null;
  const left = list.length - SHOWN_MAX;
  return h(
    "details",
    { "data-key": key },
    h("summary", {}, title),
    h("ul", { class: "lines" }, list.slice(0, SHOWN_MAX).map((each) => h("li", {}, line(each))), left > 0 ? h("li", {}, `and ${left} more`) : null),
  );
}
