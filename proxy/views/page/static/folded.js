// A table that opens below its summary, in the summary of the page: of workers, or of policies.

import { h, setText } from "./dom.js";

/** Return the box, which is hidden at first, with `fill`: what the summary says, and the state and texts of each row. */
export function foldedTable(kind, titles) {
  const rows = h("tbody");
  const says = h("summary");
  const heads = titles.map((title) => h("th", { scope: "col" }, title));
  const box = h("details", { class: `folded ${kind}`, hidden: true }, says, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), rows));

  function fill(said, isBad, entries) {
    box.hidden = !entries.length;
    box.dataset.lost = isBad ? "some" : "none";
    setText(says, said);
    while (rows.children.length > entries.length) rows.lastElementChild.remove();
    entries.forEach(([state, texts], at) => {
      const row = rows.children[at] ?? rows.appendChild(h("tr", {}, ...titles.map(() => h("td"))));
      row.dataset.state = state;
      texts.forEach((text, place) => setText(row.children[place], text));
    });
  }

  return { box, fill };
}
