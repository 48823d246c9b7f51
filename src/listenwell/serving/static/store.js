// The conversation, as this browser keeps it, and what the person chose.
//
// A conversation is a list of exchanges: { id, text, at, seed, model, asked, state, reply, earlier, problem }. A message
// is stored as pending before it is sent, and its reply only once it is whole: a reload finds either all of a reply or
// none of it, and asks again with the same seed. Every change reads what is stored first, since another tab may have
// written meanwhile.

const CONVERSATION = "listenwell.conversation";
const UNREADABLE = "listenwell.conversation.unreadable";
const DRAFT = "listenwell.draft";
const SETTINGS = "listenwell.settings";
const THEME = "listenwell.theme";
const VERSION = 1;

const memory = new Map(); // for browsers that store nothing
let stores = true;
const listeners = new Set();

function read(key) {
  if (memory.has(key)) return memory.get(key);
  try {
    return localStorage.getItem(key);
  } catch {
    stores = false;
    return null;
  }
}

function write(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
    memory.delete(key);
  } catch {
    stores = false;
    memory.set(key, value);
  }
}

// Whether what is written outlives the page.
export function isLasting() {
  return stores;
}

export function randomId() {
  return Array.from(crypto.getRandomValues(new Uint32Array(3)), (part) => part.toString(36)).join("");
}

function randomSeed() {
  return crypto.getRandomValues(new Uint32Array(1))[0] >>> 1;
}

function empty() {
  return { version: VERSION, id: randomId(), started: new Date().toISOString(), exchanges: [] };
}

function isExchange(item) {
  const reply = item?.reply;
  return (
    typeof item?.id === "string" &&
    typeof item.text === "string" &&
    ["pending", "done", "failed"].includes(item.state) &&
    (reply === null || typeof reply?.text === "string") &&
    (item.state !== "done" || reply !== null) &&
    Array.isArray(item.earlier)
  );
}

// The conversation as it is stored. What cannot be read is put aside, not lost.
export function load() {
  const stored = read(CONVERSATION);
  if (stored === null) return empty();
  try {
    const conversation = JSON.parse(stored);
    if (conversation.version === VERSION && conversation.exchanges.every(isExchange)) return conversation;
  } catch {
    // Falls through.
  }
  write(UNREADABLE, stored);
  write(CONVERSATION, null);
  return empty();
}

function change(edit) {
  const conversation = load();
  const result = edit(conversation.exchanges, conversation);
  write(CONVERSATION, JSON.stringify(conversation));
  notify();
  return result;
}

export function onChange(listener) {
  listeners.add(listener);
}

function notify() {
  for (const listener of listeners) listener();
}

// Another tab wrote.
addEventListener("storage", (event) => {
  if (event.key === CONVERSATION || event.key === null) notify();
});

export function find(id) {
  return load().exchanges.find((exchange) => exchange.id === id) ?? null;
}

export function last() {
  return load().exchanges.at(-1) ?? null;
}

function exchangeOf(text, model, asked) {
  const at = new Date().toISOString();
  return { id: randomId(), text, at, seed: randomSeed(), model, asked, state: "pending", reply: null, earlier: [], problem: null };
}

// Adds a message, pending; in the place of the exchange with the id `instead`, if that is given.
export function add(text, model, asked, instead = null) {
  return change((exchanges) => {
    const exchange = exchangeOf(text, model, asked);
    const place = exchanges.findIndex((one) => one.id === instead);
    if (place >= 0) exchanges.splice(place, 1, exchange);
    else exchanges.push(exchange);
    return exchange.id;
  });
}

// What was deleted meanwhile stays deleted.
function edit(id, fields) {
  if (!find(id)) return;
  change((exchanges) => {
    const exchange = exchanges.find((one) => one.id === id);
    Object.assign(exchange, typeof fields === "function" ? fields(exchange) : fields);
  });
}

export function finish(id, reply) {
  edit(id, { state: "done", reply: { ...reply, at: new Date().toISOString() }, problem: null });
}

export function setCandidates(id, candidates) {
  edit(id, ({ reply }) => (reply ? { reply: { ...reply, details: { ...reply.details, candidates } } } : {}));
}

export function fail(id, problem) {
  edit(id, { state: "failed", problem });
}

// Asks once more for a reply that failed; the seed stays the same.
export function reopen(id, model, asked) {
  edit(id, { state: "pending", problem: null, model, asked });
}

export function setModel(id, model) {
  edit(id, { model });
}

// Asks for another reply. The one so far is kept among the earlier ones, and comes back if no other is found.
export function askOther(id, model, asked) {
  edit(id, (exchange) => ({
    state: "pending",
    model,
    asked,
    seed: (exchange.seed + 1) % 2 ** 31,
    earlier: [...exchange.earlier, exchange.reply],
    reply: null,
  }));
}

export function restoreEarlier(id) {
  edit(id, (exchange) => ({ state: "done", reply: exchange.earlier.at(-1), earlier: exchange.earlier.slice(0, -1), problem: null }));
}

export function remove(id) {
  return change((exchanges) => {
    const place = exchanges.findIndex((one) => one.id === id);
    return place < 0 ? null : exchanges.splice(place, 1)[0];
  });
}

// Puts a removed exchange back at the end.
export function putBack(exchange) {
  change((exchanges) => {
    if (!exchanges.some((one) => one.id === exchange.id)) exchanges.push(exchange);
  });
}

export function clear() {
  write(CONVERSATION, null);
  write(UNREADABLE, null);
  write(DRAFT, null);
  notify();
}

export function loadDraft() {
  return read(DRAFT) ?? "";
}

export function saveDraft(text) {
  write(DRAFT, text || null);
}

export function loadSettings() {
  try {
    const settings = JSON.parse(read(SETTINGS) ?? "{}");
    return settings && typeof settings === "object" ? settings : {};
  } catch {
    return {};
  }
}

export function saveSettings(changes) {
  write(SETTINGS, JSON.stringify({ ...loadSettings(), ...changes }));
}

export function loadTheme() {
  const theme = read(THEME);
  return theme === "light" || theme === "dark" ? theme : "auto";
}

export function saveTheme(theme) {
  write(THEME, theme === "auto" ? null : theme);
}
