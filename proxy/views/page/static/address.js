// The address of what is shown, such as `#applications/app-1?partition=[rm]default&type=vcore`: it can be sent.

import { store } from "./store.js";

let focuses = false;

export function address() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const [view, ...rest] = path.split("/");
  const wanted = new URLSearchParams(query);
  return { view, id: decoded(rest.join("/")), partition: wanted.get("partition") ?? "", type: wanted.get("type") ?? "" };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // A person may have written it.
  }
}

/** The address of a thing in a view, in the partition of now. */
export function link(view, id = "") {
  const query = new URLSearchParams({ partition: store.name, ...(store.type && { type: store.type }) });
  return `#${view}${id ? `/${encodeURIComponent(id)}` : ""}${store.name ? `?${query}` : ""}`;
}

/** Show a thing; with `byKey` its panel gets the focus. */
export function go(view, id = "", byKey = false) {
  focuses = byKey;
  location.hash = link(view, id);
}

/** Have the address say what is shown, without another entry in the history. */
export function settle(view, id) {
  if (store.name && location.hash !== link(view, id)) history.replaceState(null, "", link(view, id));
}

/** Whether the panel that opens next was asked for by a key. */
export function takesFocus() {
  const was = focuses;
  focuses = false;
  return was;
}
