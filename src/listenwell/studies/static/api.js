// The three calls that a page makes, each with a time limit.

const TIME_LIMIT = 20_000;

/** The server answered, and the answer is no. */
export class Refused extends Error {
  constructor(status, body, retryAfter) {
    super(typeof body?.detail === "string" ? body.detail : `HTTP ${status}`);
    this.status = status;
    this.body = body;
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed later: the server is restarting, overloaded or slow. */
  get temporary() {
    return this.status >= 500 || [408, 425, 429].includes(this.status);
  }
}

export class Api {
  #base;

  constructor(token) {
    // Relative to /r/TOKEN, so that a study also works below a path of a reverse proxy.
    this.#base = new URL(`../api/${encodeURIComponent(token)}`, location.href).href;
  }

  state() {
    return request(this.#base, { cache: "no-store" });
  }

  answer(answers) {
    // keepalive: an answer on its way arrives even if the tab is closed meanwhile.
    return request(`${this.#base}/answers`, { ...json({ answers }), keepalive: true });
  }

  finish(task) {
    return request(`${this.#base}/task/${encodeURIComponent(task)}/done`, json({}));
  }
}

function json(body) {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

async function request(url, options) {
  const controller = new AbortController();
  const limit = setTimeout(() => controller.abort(), TIME_LIMIT);
  try {
    const response = await fetch(url, { ...options, signal: controller.signal, referrerPolicy: "no-referrer" });
    const body = await response.json().catch((error) => {
      if (response.ok && response.status !== 204) throw error; // cut off in the middle: not acknowledged
      return null;
    });
    if (response.ok) return body;
    throw new Refused(response.status, body, Number(response.headers.get("Retry-After")) || null);
  } finally {
    clearTimeout(limit);
  }
}
