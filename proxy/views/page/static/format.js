// Quantities, shares and times as a person reads them.

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
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
  return `${number(value < 0 ? -left : left)} ${BINARY[unit]}`;
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
  const parts = types
    .map((type, place) => [type, values[place]])
    .filter(([, value]) => value)
    .map(([type, value]) => `${quantity(type, value)}${BYTES.has(type) ? "" : ` ${noun(type, value)}`}`);
  return parts.join(", ") || "nothing";
}

/** What is counted: one pod, two pods; a core is a thousand of its quantity. */
function noun(type, value) {
  const one = type === "vcore" ? 1000 : 1;
  return value === one && label(type).endsWith("s") ? label(type).slice(0, -1) : label(type);
}

export function label(type) {
  return type === "vcore" ? "cores" : type;
}

export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
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
