// A table of any length: only the rows that can be seen are elements.

import { h } from "./dom.js";

const SPARE = 6;

export class Table {
  /**
   * columns: [{key, title, numeric}]; cells(id) returns the texts of a row by key; onOpen(id) is called
   * with Enter or a click; onOrder(key) with a click on a title.
   */
  constructor({ columns, label, cells, onOpen, onOrder }) {
    this.columns = columns;
    this.cells = cells;
    this.onOpen = onOpen;
    this.ids = [];
    this.places = new Map();
    this.selected = "";
    this.rows = new Map();
    this.head = h("div", { class: "table-head", role: "row", "aria-rowindex": "1" }, columns.map((column) => this.title(column, onOrder)));
    this.body = h("div", { class: "table-body", role: "rowgroup" });
    this.element = h(
      "div",
      { class: "table", role: "grid", "aria-label": label, tabindex: "0", "aria-readonly": "true" },
      h("div", { role: "rowgroup", class: "table-top" }, this.head),
      this.body,
    );
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.height = 0;
    this.resized = new ResizeObserver(() => this.resize());
    this.resized.observe(this.element);
  }

  title(column, onOrder) {
    const button = h("button", { type: "button", onclick: () => onOrder(column.key) }, column.title);
    const kind = `cell c-${column.key}${column.numeric ? " numeric" : ""}`;
    column.head = h("div", { class: kind, role: "columnheader", "aria-sort": "none" }, button);
    return column.head;
  }

  showOrder(key, descending) {
    for (const column of this.columns) {
      column.head.setAttribute("aria-sort", column.key !== key ? "none" : descending ? "descending" : "ascending");
    }
  }

  /** The rows may have another height in another width; the chosen one stays in sight. */
  resize() {
    const height = Number.parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 44;
    if (height !== this.height) {
      this.element.scrollTop *= height / (this.height || height);
      this.height = height;
      for (const row of this.rows.values()) row.at = -1;
      this.lay(this.ids);
    }
    if (this.places.has(this.selected)) this.select(this.selected);
    else this.draw();
  }

  lay(ids) {
    this.ids = ids;
    this.places = new Map(ids.map((id, at) => [id, at]));
    this.element.setAttribute("aria-rowcount", ids.length + 1);
    if (!this.height) return; // It is not in the page yet.
    this.body.style.height = `${ids.length * this.height}px`;
    this.draw();
  }

  /** Draw the rows that can be seen; those that are there already are filled again only if they changed. */
  draw(changed = null) {
    const { height } = this;
    if (!height) return;
    const from = Math.max(0, Math.floor(this.element.scrollTop / height) - SPARE);
    const to = Math.min(this.ids.length, Math.ceil((this.element.scrollTop + this.element.clientHeight) / height) + SPARE);
    const wanted = new Set(this.ids.slice(from, to));
    const free = [];
    for (const [id, row] of this.rows) {
      if (!wanted.has(id)) {
        this.rows.delete(id);
        free.push(row);
      }
    }
    for (let at = from; at < to; at += 1) {
      const id = this.ids[at];
      let row = this.rows.get(id);
      const isNew = row === undefined;
      if (isNew) {
        row = free.pop() ?? this.makeRow();
        this.rows.set(id, row);
        row.id = id;
        row.element.id = `row-${at}`;
        if (!row.element.isConnected) this.body.append(row.element);
      }
      if (row.at !== at) {
        row.at = at;
        row.element.id = `row-${at}`;
        row.element.style.transform = `translateY(${at * height}px)`;
        row.element.setAttribute("aria-rowindex", at + 2);
      }
      const isSelected = id === this.selected;
      if (row.isSelected !== isSelected) {
        row.isSelected = isSelected;
        row.element.setAttribute("aria-selected", String(isSelected));
      }
      if (isNew || changed === null || changed.has(id)) this.fillRow(row, id);
    }
    for (const row of free) row.element.remove();
    const at = this.places.get(this.selected);
    if (at === undefined || at < from || at >= to) this.element.removeAttribute("aria-activedescendant");
    else this.element.setAttribute("aria-activedescendant", `row-${at}`);
  }

  makeRow() {
    const row = { cells: {}, texts: {}, at: -1, id: "", isSelected: null };
    const cells = this.columns.map((column) => {
      const kind = `cell c-${column.key}${column.numeric ? " numeric" : ""}`;
      row.cells[column.key] = h("div", { class: kind, role: "gridcell" });
      return row.cells[column.key];
    });
    row.element = h("div", { class: "table-row", role: "row" }, cells);
    row.element.addEventListener("click", () => {
      this.select(row.id);
      this.onOpen(row.id);
    });
    return row;
  }

  fillRow(row, id) {
    const texts = this.cells(id);
    for (const [key, cell] of Object.entries(row.cells)) {
      if (row.texts[key] !== texts[key]) {
        row.texts[key] = texts[key];
        cell.textContent = texts[key];
        cell.title = texts[key];
      }
    }
    if (row.element.dataset.kind !== texts.kind) row.element.dataset.kind = texts.kind;
  }

  select(id) {
    this.selected = id;
    const at = this.places.get(id);
    if (at === undefined) return;
    const { height, element } = this;
    const head = this.head.offsetHeight;
    const top = at * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height > element.scrollTop + element.clientHeight - head) {
      element.scrollTop = top + height - element.clientHeight + head;
    }
    this.draw(new Set());
  }

  key(event) {
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.places.get(this.selected) ?? -1;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 2);
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.ids.length - 1 };
    if (event.key in moves && this.ids.length) {
      event.preventDefault();
      this.select(this.ids[Math.max(0, Math.min(this.ids.length - 1, moves[event.key]))]);
    } else if ((event.key === "Enter" || event.key === " ") && at >= 0) {
      event.preventDefault();
      this.onOpen(this.selected, true);
    }
  }

  close() {
    this.resized.disconnect();
  }
}
