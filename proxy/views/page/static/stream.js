// Server-sent events over fetch: unlike EventSource it can send a token, and tells one failure from another.

const RETRY_MS = 1000;
const RETRY_MAX_MS = 15000;
const SILENCE_MS = 30000;

export function token() {
  try {
    return sessionStorage.getItem("licorne-token") ?? "";
  } catch {
    return "";
  }
}

export function setToken(text) {
  try {
    sessionStorage.setItem("licorne-token", text);
  } catch {
    // It is asked for again after a reload.
  }
}

export function headers() {
  return token() ? { Authorization: `Bearer ${token()}` } : {};
}

/** Ask for a document; an error says what the server said. */
export async function ask(path, parameters = {}, signal = undefined) {
  const query = new URLSearchParams(parameters).toString();
  const response = await fetch(query ? `${path}?${query}` : path, { headers: headers(), signal });
  const document = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(document.message ?? `the server answers ${response.status}`);
  return document;
}

/**
 * Read a stream until it is closed, and again whenever it breaks.
 *
 * onEvent(kind, data) is called for each event, onState(state, why) when the connection changes: connecting,
 * live, waiting (it is tried again), absent (the server has no such stream), refused (a token is required).
 */
export function listen(path, { onEvent, onState }) {
  const closing = new AbortController();
  let retry = RETRY_MS;
  let failures = 0;
  let last = "";

  async function once() {
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    closing.signal.addEventListener("abort", stop);
    let silence = setTimeout(stop, SILENCE_MS);
    try {
      const response = await fetch(path, {
        headers: last ? { ...headers(), "Last-Event-ID": last } : headers(),
        signal: attempt.signal,
      });
      if (response.status === 401 || response.status === 403) return "refused";
      if (response.status === 404) return "absent";
      if (!response.ok) return "waiting";
      failures = 0;
      onState("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return "waiting";
        clearTimeout(silence);
        silence = setTimeout(stop, SILENCE_MS);
        const searched = Math.max(0, text.length - 1);
        text += value;
        let from = 0;
        for (let end = text.indexOf("\n\n", searched); end >= 0; end = text.indexOf("\n\n", from)) {
          handle(text.slice(from, end));
          from = end + 2;
        }
        text = text.slice(from);
      }
    } finally {
      clearTimeout(silence);
      closing.signal.removeEventListener("abort", stop);
    }
  }

  function handle(block) {
    let kind = "message";
    const data = [];
    for (const line of block.split("\n")) {
      if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
      else if (line.startsWith("id:")) last = line.slice(3).trim();
      else if (line.startsWith("event:")) kind = line.slice(6).trim();
      else if (line.startsWith("retry:")) retry = Number(line.slice(6)) || RETRY_MS;
    }
    if (data.length) onEvent(kind, JSON.parse(data.join("\n")));
  }

  (async () => {
    onState("connecting");
    while (!closing.signal.aborted) {
      const outcome = await once().catch(() => "waiting");
      if (closing.signal.aborted) return;
      onState(outcome);
      if (outcome === "refused" || outcome === "absent") return;
      const pause = Math.min(RETRY_MAX_MS, retry * 2 ** failures);
      failures += 1;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  })();
  return () => closing.abort();
}
