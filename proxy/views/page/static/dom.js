// Making elements. Texts are always set as text: nothing that a name contains is ever read as HTML.

export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Choices of which one is chosen, the first one at the beginning: pairs of a key and a title. */
export function choices(name, label, pairs) {
  const radio = (key, at) => h("input", { type: "radio", name, value: key, checked: at === 0 });
  return h("div", { class: "choices", role: "radiogroup", "aria-label": label }, pairs.map(([key, title], at) => h("label", {}, radio(key, at), h("span", {}, title))));
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setVariable(element, name, value) {
  const text = String(value);
  if (element.style.getPropertyValue(name) !== text) element.style.setProperty(name, text);
}

/** The colour that a variable of the style sheet has in the theme of now, for drawings on a canvas. */
export function colour(variable) {
  const probe = h("i", { class: "visually-hidden" });
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** A canvas of so many CSS pixels, sharp on every screen; returns its context. */
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, t] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== t) {
    canvas.width = w;
    canvas.height = t;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
