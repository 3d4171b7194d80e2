// Quantities, shares and times in the units of configurations and explanations: `memory 16Gi, vcore 4`, `2m30s`.

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const BYTES = new Set(["memory", "ephemeral-storage", "storage"]);

export function quantity(type, value) {
  if (value === null || value === undefined) return "–";
  if (type === "vcore") return number(value / 1000);
  if (BYTES.has(type) || type.startsWith("hugepages")) return bytes(value);
  return number(value);
}

function bytes(value) {
  let unit = 0;
  let left = Math.abs(value);
  while (left >= 1024 && unit < BINARY.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${number(value < 0 ? -left : left)}${BINARY[unit]}`;
}

const PLAIN = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const FINE = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function number(value) {
  return (Math.abs(value) < 100 ? FINE : PLAIN).format(value);
}

export function percent(share) {
  if (!Number.isFinite(share)) return "–";
  const value = share * 100;
  return `${value > 0 && value < 1 ? "<1" : Math.round(value)} %`;
}

/** All quantities of a resource in one line; those that are zero are left out. */
export function resource(types, values) {
  if (!values) return "–";
  return quantities(Object.fromEntries(types.map((type, place) => [type, values[place]]).filter(([, value]) => value))) || "nothing";
}

/** The quantities of a document, by type. */
export function quantities(values) {
  return Object.keys(values ?? {}).sort().map((type) => `${type} ${quantity(type, values[type])}`).join(", ");
}

const UNITS = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];

/** A duration in its two largest units. */
export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const at = UNITS.findIndex(([, size]) => seconds >= size);
  if (at < 0) return "0s";
  const [unit, size] = UNITS[at];
  const [smaller, part] = UNITS[at + 1] ?? ["", 1];
  const rest = Math.floor((seconds % size) / part);
  return `${Math.floor(seconds / size)}${unit}${rest ? `${rest}${smaller}` : ""}`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECONDS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function clock(milliseconds, withSeconds = false) {
  return (withSeconds ? SECONDS : CLOCK).format(milliseconds);
}

export function counted(count, noun) {
  return `${PLAIN.format(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A key by which names are in the order that a person expects: n2 before n10. */
export function natural(name) {
  return name.replace(/\d+/g, (digits) => digits.padStart(12, "0"));
}
