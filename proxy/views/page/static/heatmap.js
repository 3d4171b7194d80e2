// The heat map: a square a node on one canvas, so that ten thousand of them cost little.

import { colour, sized } from "./dom.js";

const STEPS = 10;
const SIZE_MIN = 7;
const SIZE_MAX = 132;
const GAP_FROM = 13;
const LABEL_FROM = 60;

/** A colour of this luminance stands out from black as much as from white. */
const EVEN_LUMINANCE = 0.179;

/** The relative luminance of a colour, from 0 to 1, as WCAG defines it. */
function luminance(colour) {
  const [red, green, blue] = colour.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

export class HeatMap {
  constructor(canvas) {
    this.canvas = canvas;
    this.nodes = [];
    this.places = new Map();
    this.selected = -1;
    this.columns = 1;
    this.size = 10;
    this.readColours();
  }

  readColours() {
    const parse = (name) => colour(name).match(/[\d.]+/g).slice(0, 3).map(Number);
    const [from, to] = [parse("--heat-from"), parse("--heat-to")];
    const mixed = Array.from({ length: STEPS + 1 }, (_, step) => {
      return from.map((part, each) => Math.round(part + ((to[each] - part) * step) / STEPS));
    });
    this.labels = mixed.map((each) => (luminance(each) > EVEN_LUMINANCE ? "black" : "white"));
    this.scale = mixed.map((each) => `rgb(${each.join(" ")})`);
    this.text = colour("--text");
    this.surface = colour("--surface");
    this.muted = colour("--muted");
    this.warn = colour("--warn");
  }

  /** Take the nodes in their order: each with id, share, closed, reserved and dim. */
  lay(nodes, width) {
    this.nodes = nodes;
    this.places = new Map(nodes.map((node, at) => [node.id, at]));
    const area = (width * Math.max(300, innerHeight * 0.5)) / Math.max(1, nodes.length);
    const wanted = Math.max(SIZE_MIN, Math.min(SIZE_MAX, Math.floor(Math.sqrt(area))));
    this.columns = Math.max(1, Math.min(Math.ceil(width / wanted), Math.floor(width / SIZE_MIN)));
    this.size = Math.floor(width / this.columns);
    const rows = Math.max(1, Math.ceil(nodes.length / this.columns));
    this.context = sized(this.canvas, width, rows * this.size + 2);
    this.context.clearRect(0, 0, width, rows * this.size + 2);
    for (let at = 0; at < nodes.length; at += 1) this.draw(at);
  }

  draw(at) {
    const node = this.nodes[at];
    const { context, size } = this;
    if (!node || !context) return;
    const x = (at % this.columns) * size;
    const y = Math.floor(at / this.columns) * size;
    const gap = size > LABEL_FROM ? 4 : size > GAP_FROM ? 2 : 1;
    const inner = size - gap;
    context.clearRect(x, y, size, size);
    context.globalAlpha = node.dim ? 0.15 : 1;
    context.fillStyle = this.scale[Math.max(0, Math.min(STEPS, Math.round(node.share * STEPS)))];
    context.fillRect(x, y, inner, inner);
    if (node.closed) {
      context.strokeStyle = this.muted;
      context.lineWidth = Math.max(1, Math.min(4, size / 12));
      context.beginPath();
      const from = size >= LABEL_FROM ? 0.65 : 0.2; // Beside the texts, where there are some.
      context.moveTo(x + inner * from, y + inner * 0.85);
      context.lineTo(x + inner * 0.85, y + inner * from);
      context.stroke();
    }
    if (node.reserved) {
      const dot = Math.max(2, Math.min(12, inner / 4));
      const edge = size > GAP_FROM ? 2 : 0; // It would not stand out from a full node.
      context.fillStyle = this.surface;
      context.fillRect(x + inner - dot - edge, y, dot + edge, dot + edge);
      context.fillStyle = this.warn;
      context.fillRect(x + inner - dot, y, dot, dot);
    }
    if (size >= LABEL_FROM) this.label(node, x, y, inner);
    context.globalAlpha = 1;
    if (at === this.selected) {
      const line = Math.max(2, Math.min(3, size / 5));
      context.strokeStyle = this.text;
      context.lineWidth = line;
      context.strokeRect(x + line / 2, y + line / 2, inner - line, inner - line);
    }
  }

  /** Write the name and the share into a square that has room for them. */
  label(node, x, y, inner) {
    const { context } = this;
    const step = Math.max(0, Math.min(STEPS, Math.round(node.share * STEPS)));
    context.fillStyle = this.labels[step];
    context.textBaseline = "alphabetic";
    context.font = `650 ${Math.round(inner / 5)}px system-ui, sans-serif`;
    context.fillText(`${Math.round(node.share * 100)} %`, x + inner * 0.1, y + inner * 0.88, inner * 0.8);
    const size = Math.max(11, Math.round(inner / 9));
    context.font = `500 ${size}px system-ui, sans-serif`;
    context.fillText(node.id, x + inner * 0.1, y + inner * 0.1 + size, inner * 0.7);
  }

  select(at) {
    const before = this.selected;
    this.selected = at;
    this.draw(before);
    this.draw(at);
  }

  /** The node at a point of the canvas, -1 for none. */
  at(x, y) {
    const column = Math.floor(x / this.size);
    if (column >= this.columns || column < 0 || y < 0) return -1;
    const found = Math.floor(y / this.size) * this.columns + column;
    return found < this.nodes.length ? found : -1;
  }

  /** Where a node is drawn, in pixels of the canvas. */
  position(at) {
    return { x: (at % this.columns) * this.size, y: Math.floor(at / this.columns) * this.size };
  }
}
