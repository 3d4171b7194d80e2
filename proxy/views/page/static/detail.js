// The panel beside a view that shows one thing; Escape closes it and returns to where the reader was.

import { h } from "./dom.js";

let onClose = null;
let onLeave = () => {};
let returnTo = null;

const panel = () => document.getElementById("detail");

/** Open the panel with a title; returns the element for its content. */
export function openDetail(title, closed = () => {}) {
  const was = onClose;
  onClose = null;
  was?.();
  if (panel().hidden) returnTo = document.activeElement;
  const content = h("div", { class: "detail-content" });
  panel().replaceChildren(
    h(
      "div",
      { class: "detail-head" },
      h("h2", { tabindex: "-1" }, title),
      h("button", { class: "button", type: "button", "aria-label": "Close", onclick: leaveDetail }, "✕"),
    ),
    content,
  );
  panel().hidden = false;
  document.body.dataset.detail = "open";
  onClose = closed;
  return content;
}

export function focusDetail() {
  panel().querySelector("h2")?.focus();
}

export function closeDetail() {
  const was = onClose;
  onClose = null;
  if (!panel().hidden) {
    panel().hidden = true;
    panel().replaceChildren();
    delete document.body.dataset.detail;
    if (returnTo?.isConnected) returnTo.focus({ preventScroll: true });
  }
  was?.();
}

/** Be told when the reader closes the panel. */
export function whenLeft(listener) {
  onLeave = listener;
}

export function leaveDetail() {
  closeDetail();
  onLeave();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !panel().hidden && !document.querySelector("dialog[open]")) leaveDetail();
});
