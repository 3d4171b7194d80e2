"""How well what a page shows stands out from what is behind it, by the formula of WCAG 2, in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["faint_graphics", "faint_labels", "faint_texts"]

_TEXT_LEAST: Final = 4.5
_GRAPHIC_LEAST: Final = 3
_FORMULA: Final = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const over = (front, back) => {
  const alpha = front[3];
  return [...[0, 1, 2].map((at) => front[at] * alpha + back[at] * (1 - alpha)), 1];
};
const parse = (text) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const luminance = (colour) => {
  const [r, g, b] = colour.slice(0, 3).map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one, other) => {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
};
const behind = (element) => {
  const layers = [];
  for (let each = element; each; each = each.parentElement) {
    layers.push(parse(getComputedStyle(each).backgroundColor));
  }
  return layers.reverse().reduce((back, front) => over(front, back), parse("Canvas"));
};
const faded = (element) => {
  let opacity = 1;
  for (let each = element; each; each = each.parentElement) opacity *= Number(getComputedStyle(each).opacity);
  return opacity;
};
"""
_TEXTS: Final = """
(least) => {
  %s
  const faint = new Set();
  let count = 0;
  const note = (element, text, pseudo) => {
    const style = getComputedStyle(element, pseudo);
    const back = behind(element);
    const front = parse(element instanceof SVGElement ? style.fill : style.color);
    front[3] *= faded(element);
    const found = contrast(over(front, back), back);
    count += 1;
    const kind = element.className.baseVal ?? element.className;
    if (found < least) faint.add(`${found.toFixed(2)}: ${kind}: ${text}`);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.textContent.trim();
    const isSeen = element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
    const isInButton = element.tagName !== "OPTION" && element.tagName !== "NOSCRIPT";
    if (text && isSeen && isInButton && !element.closest(".visually-hidden")) note(element, text);
  }
  for (const input of document.querySelectorAll("input[placeholder]")) {
    note(input, input.placeholder, "::placeholder");
  }
  return [count, [...faint]];
}
"""
_GRAPHICS: Final = """
([least, kinds]) => {
  %s
  const faint = new Set();
  for (const [selector, property] of kinds) {
    for (const element of document.querySelectorAll(selector)) {
      if (!element.checkVisibility()) continue;
      const style = getComputedStyle(element);
      const back = behind(element.parentElement);
      const front = over(parse(style[property]), back);
      const found = contrast(front, back);
      if (found < least) faint.add(`${found.toFixed(2)}: ${selector}`);
    }
  }
  return [...faint];
}
"""
_LABELS: Final = """
async (least) => {
  %s
  const { HeatMap } = await import("/heatmap.js");
  const map = new HeatMap(document.createElement("canvas"));
  const found = map.scale.map((colour, step) => contrast(parse(colour), parse(map.labels[step])));
  return found.filter((each) => each < least);
}
"""


def faint_texts(page: Page) -> tuple[int, list[str]]:
    """Return how many texts are shown, and those whose contrast is below 4.5 : 1."""
    count, faint = page.evaluate(_TEXTS % _FORMULA, _TEXT_LEAST)
    return count, faint


def faint_graphics(page: Page, *kinds: tuple[str, str]) -> list[str]:
    """Return which of the elements have a contrast below 3 : 1 to what is behind them.

    Args:
        page: Where they are shown.
        kinds: A selector, and the property that has the colour.
    """
    faint: list[str] = page.evaluate(_GRAPHICS % _FORMULA, [_GRAPHIC_LEAST, list(kinds)])
    return faint


def faint_labels(page: Page) -> list[float]:
    """Return the contrasts below 4.5 : 1 between a square of the heat map and the text in it."""
    faint: list[float] = page.evaluate(_LABELS % _FORMULA, _TEXT_LEAST)
    return faint
