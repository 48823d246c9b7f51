// From a pending message to its reply: asks, waits where it must, and asks again where the connection broke.

import { complete, Problem } from "./api.js";
import * as store from "./store.js";

const SENT = 40_000; // characters of the conversation: what came before is too long ago for any model here
const PAUSES = [500, 1500, 4000]; // milliseconds before each new attempt after a broken connection
const BUSY = 8; // attempts at a server that has no room
const OTHER_TAB = 400; // milliseconds until "another tab" is named as the reason for waiting
const SEEN = 1000; // milliseconds at most until what another tab stored is seen in this one
const LOOK = 25; // milliseconds between two looks
const OCCUPIED = Symbol("another tab is asking");

let live = null; // { id, text, phase, seconds, controller }
let page = null; // what the page does: changed(), growing(id, text), askForKey(), anyModel(), ended(outcome, exchange)

export function connect(callbacks) {
  page = callbacks;
}

export function current() {
  return live;
}

export function stop() {
  live?.controller.abort();
}

function show(phase, seconds = null) {
  if (!live || (live.phase === phase && live.seconds === seconds)) return;
  live.phase = phase;
  live.seconds = seconds;
  page.changed();
}

// Answers a pending exchange, once: while one tab asks, others wait, and find the reply when it is there.
export async function answer(id) {
  if (live) return;
  live = { id, text: "", phase: "asking", seconds: null, controller: new AbortController() };
  const { signal } = live.controller;
  page.changed();
  const waiting = setTimeout(() => show("tab"), OTHER_TAB);
  const begin = async () => {
    clearTimeout(waiting);
    show("asking");
    return store.find(id)?.state === "pending" ? await attempt(id, signal) : null;
  };
  let outcome = null;
  try {
    outcome = await inTurn(id, signal, begin);
  } catch (error) {
    if (error.name !== "AbortError") throw error; // stopped while another tab was asking: nothing to undo
  } finally {
    clearTimeout(waiting);
    live = null;
    page.changed();
  }
  const exchange = outcome && (store.find(id) ?? outcome.exchange); // none if it was deleted meanwhile
  if (exchange) page.ended(outcome, exchange);
}

// Without locks (they need HTTPS or this machine itself) two tabs may both ask; the reply is stored once all the same.
async function inTurn(id, signal, begin) {
  if (!navigator.locks) return begin();
  const name = `listenwell ${id}`;
  const free = (lock) => (lock ? begin() : OCCUPIED);
  const outcome = await navigator.locks.request(name, { ifAvailable: true }, free);
  if (outcome !== OCCUPIED) return outcome;
  return navigator.locks.request(name, { signal }, async () => {
    await seen(id);
    return begin();
  });
}

// A lock may be handed on before this tab sees what the other one stored.
async function seen(id) {
  for (let waited = 0; waited < SEEN && store.find(id)?.state === "pending"; waited += LOOK) {
    await new Promise((resolve) => setTimeout(resolve, LOOK));
  }
}

// What came of it: { kind: "done" | "failed" | "stopped" | "returned" | "kept" | "same" }.
async function attempt(id, signal) {
  const tries = { connection: 0, server: 0, busy: 0, varied: false };
  for (;;) {
    const exchange = store.find(id);
    if (exchange?.state !== "pending") return null; // deleted meanwhile
    try {
      live.text = "";
      const reply = await ask(exchange, signal, tries.varied);
      if (!exchange.earlier.some((one) => one.text === reply.text)) {
        store.finish(id, reply);
        return { kind: "done" };
      }
      if (tries.varied) return keepEarlier(id, "same");
      tries.varied = true; // a model that takes the likeliest words finds the same ones with every seed
    } catch (error) {
      if (error.name === "AbortError") return stopped(exchange);
      if (!(error instanceof Problem)) throw error;
      if (tries.varied && error.kind === "refused") return keepEarlier(id, "same"); // it writes in one way alone
      try {
        if (!(await recovers(error, tries, signal))) return failed(exchange, error);
      } catch (interrupted) {
        if (interrupted.name !== "AbortError") throw interrupted;
        live.text = "";
        return stopped(exchange);
      }
    }
  }
}

async function ask(exchange, signal, varied) {
  let { model } = exchange;
  if (!model) {
    model = await page.anyModel();
    store.setModel(exchange.id, model);
  }
  const body = { ...bodyOf({ ...exchange, model }), ...(varied ? { temperature: 0.9, top_p: 0.95 } : {}) };
  const onText = (text) => {
    live.text = text;
    show("asking");
    page.growing(exchange.id, text);
  };
  return complete(body, { signal, onText });
}

function bodyOf({ id, model, seed, asked }) {
  return { model, seed, messages: messagesUpTo(id), listenwell: { ...asked, explain: true } };
}

// What else the model would consider saying, found when somebody wants to know: a streamed reply is the only one written.
export async function findCandidates(id) {
  const exchange = store.find(id);
  const body = bodyOf({ ...exchange, model: exchange.reply.model, asked: { ...exchange.asked, mode: "rerank" } });
  const { text, details } = await complete(body, { onText() {} });
  const found = Array.isArray(details?.candidates) ? details.candidates : [];
  store.setCandidates(id, [text, ...found]);
}

// Messages that got no reply are joined with the next one: in all that a model has read, the two take turns. What the
// server refused to read would be refused again.
function messagesUpTo(id) {
  const { exchanges } = store.load();
  const messages = [];
  for (const exchange of latest(exchanges.slice(0, exchanges.findIndex((one) => one.id === id) + 1))) {
    const isAsked = exchange.id === id;
    if (!isAsked && exchange.problem?.kind === "refused") continue;
    const before = messages.at(-1);
    if (before?.role === "user") before.content += `\n${exchange.text}`;
    else messages.push({ role: "user", content: exchange.text });
    if (!isAsked && exchange.reply?.text.trim()) messages.push({ role: "assistant", content: exchange.reply.text });
  }
  return messages;
}

// As many of the last exchanges as are sent; the last one always.
function latest(exchanges) {
  let length = 0;
  let place = exchanges.length;
  while (place > 0) {
    const { text, reply } = exchanges[place - 1];
    length += text.length + (reply?.text.length ?? 0);
    if (length > SENT && place < exchanges.length) break;
    place--;
  }
  return exchanges.slice(place);
}

// Waits for what is missing. Whether it is worth asking again.
async function recovers(problem, tries, signal) {
  if (problem.kind === "key") return page.askForKey();
  if (problem.kind === "busy") {
    if (++tries.busy >= BUSY) return false;
    await countDown(Math.min(60, Math.ceil(problem.wait ?? 2)), signal);
    return true;
  }
  if (problem.kind === "connection" && !navigator.onLine) {
    show("offline");
    await online(signal);
    tries.connection = 0;
    return true;
  }
  if (problem.kind === "connection" && tries.connection < PAUSES.length) {
    show("broken");
    await pause(PAUSES[tries.connection++], signal);
    return true;
  }
  return problem.kind === "server" && tries.server++ < 1;
}

function failed(exchange, problem) {
  if (exchange.earlier.length) return keepEarlier(exchange.id, "kept");
  const { kind, code } = problem;
  store.fail(exchange.id, { kind, code, message: kind === "refused" ? problem.message : "" });
  return { kind: "failed" };
}

function keepEarlier(id, kind) {
  store.restoreEarlier(id);
  return { kind };
}

// What a person stopped stays as far as it came; if nothing came, the message goes back to where it was written.
function stopped(exchange) {
  if (!store.find(exchange.id)) return null; // deleted meanwhile
  if (live.text.trim()) {
    store.finish(exchange.id, { text: live.text, model: exchange.model, details: null, stopped: true });
    return { kind: "stopped" };
  }
  if (exchange.earlier.length) return keepEarlier(exchange.id, "kept");
  store.remove(exchange.id);
  return { kind: "returned", exchange };
}

function aborted(signal, reject) {
  const give = () => reject(new DOMException("stopped", "AbortError"));
  if (signal.aborted) give();
  else signal.addEventListener("abort", give, { once: true });
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    aborted(signal, reject);
    setTimeout(resolve, milliseconds);
  });
}

function online(signal) {
  return new Promise((resolve, reject) => {
    aborted(signal, reject);
    addEventListener("online", resolve, { once: true });
  });
}

async function countDown(seconds, signal) {
  for (let left = seconds; left > 0; left--) {
    show("busy", left);
    await pause(1000, signal);
  }
}
