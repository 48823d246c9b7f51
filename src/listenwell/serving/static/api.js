// The server: models, resources, and replies as they are written.

const KEY = "listenwell.key";
let keyInMemory = null;

// What went wrong with a request. `kind` is one of: key, busy, connection, server, refused.
export class Problem extends Error {
  constructor(kind, message = "", { wait = null, code = "" } = {}) {
    super(message);
    this.kind = kind;
    this.wait = wait; // seconds, where the server says how long
    this.code = code; // the server's own name for it
  }
}

export function setKey(key) {
  keyInMemory = key;
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    // Kept for this page alone, then.
  }
}

function storedKey() {
  try {
    return keyInMemory ?? sessionStorage.getItem(KEY);
  } catch {
    return keyInMemory;
  }
}

async function request(path, options = {}) {
  const headers = { ...options.headers };
  const key = storedKey();
  if (key) headers.Authorization = `Bearer ${key}`;
  let response;
  try {
    // Addresses are relative, so that the page also works behind a proxy that serves it under a path.
    response = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store" });
  } catch (error) {
    // A key with characters that no header can hold is refused by the browser, not by the server.
    if (error instanceof TypeError && key && !/^[\x20-\x7e]+$/.test(key)) throw new Problem("key");
    throw problemOf(error);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

// An abort stays what it is; everything else that interrupts a request is a matter of the connection.
function problemOf(error) {
  return error.name === "AbortError" || error instanceof Problem ? error : new Problem("connection", error.message);
}

async function refusal(response) {
  let message = "";
  let code = "";
  try {
    const { error } = await response.json();
    if (typeof error?.message === "string") message = error.message;
    if (typeof error?.code === "string") code = error.code;
  } catch {
    // Not JSON, as from a proxy: the status has to do.
  }
  const seconds = Number.parseFloat(response.headers.get("Retry-After") ?? "");
  const wait = Number.isFinite(seconds) ? Math.max(0, seconds) : null;
  const kinds = { 401: "key", 429: "busy", 503: "busy" };
  const kind = kinds[response.status] ?? (response.status >= 500 ? "server" : "refused");
  return new Problem(kind, message || `HTTP ${response.status}`, { wait, code });
}

async function getJson(path) {
  const response = await request(path);
  try {
    return await response.json();
  } catch (error) {
    throw problemOf(error);
  }
}

// The models that reply: [{ id, languages, takesIntent, intents, takesPositivity, about }].
export async function fetchModels() {
  const body = await getJson("v1/models");
  return (Array.isArray(body.data) ? body.data : []).map((item) => {
    const about = item.listenwell ?? {};
    return {
      id: String(item.id),
      languages: Array.isArray(about.languages) ? about.languages.map(String) : [],
      takesIntent: about.takes_intent === true,
      intents: Array.isArray(about.intents) ? about.intents.map(String) : [],
      takesPositivity: about.takes_positivity === true,
      about: typeof about.about === "string" ? about.about : "",
    };
  });
}

export async function fetchResources(language) {
  return getJson(`v1/resources?language=${encodeURIComponent(language)}`);
}

// Asks for a reply. `onText` is called with the whole text so far; what comes back is { text, model, details }. Without
// the mark of its end a reply is not whole, and counts as a broken connection.
export async function complete(body, { signal, onText }) {
  const response = await request("v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...body, stream: true }),
    signal,
  });
  const reply = { text: "", model: body.model, details: null };
  try {
    if ((response.headers.get("Content-Type") ?? "").includes("application/json")) {
      take(reply, await response.json());
      return reply;
    }
    for await (const data of events(response.body)) {
      if (data === "[DONE]") return reply;
      const before = reply.text;
      take(reply, parsed(data));
      if (reply.text !== before) onText(reply.text);
    }
  } catch (error) {
    throw problemOf(error);
  }
  throw new Problem("connection", "the reply ended in the middle");
}

function parsed(data) {
  try {
    return JSON.parse(data);
  } catch {
    throw new Problem("connection", "the reply cannot be read");
  }
}

function take(reply, chunk) {
  if (chunk.error) throw new Problem("server", String(chunk.error.message ?? ""));
  const choice = chunk.choices?.[0];
  const piece = choice?.delta?.content ?? choice?.message?.content;
  if (typeof piece === "string") reply.text += piece;
  if (typeof chunk.model === "string") reply.model = chunk.model;
  if (chunk.listenwell && typeof chunk.listenwell === "object") reply.details = chunk.listenwell;
}

// The data of each server-sent event of a stream.
async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data:")) yield line.slice(5).trim();
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
