// Answers wait here until the server says that they are stored, and are sent again until it does.
//
// An answer keeps its id for ever, so sending it twice is harmless. It stays in the browser, marked as acknowledged,
// until its whole task is done: if the server turns out to miss it, it can be sent once more.

import { Refused } from "./api.js";
import { uuid } from "./storage.js";

const FIRST_DELAY = 300;
const LONGEST_DELAY = 15_000;
const BATCH = 20;

/** Waits that double up to a limit, with some randomness so that a hundred raters do not come back in step. */
export class Backoff {
  #failures = 0;

  get failures() {
    return this.#failures;
  }

  reset() {
    this.#failures = 0;
  }

  next(retryAfter = null) {
    const delay = Math.min(FIRST_DELAY * 2 ** this.#failures, LONGEST_DELAY) * (0.75 + Math.random() / 2);
    this.#failures += 1;
    return Math.max(delay, (retryAfter ?? 0) * 1000);
  }
}

export class Outbox extends EventTarget {
  #store;
  #api;
  #backoff = new Backoff();
  #timer = null;
  #sending = false;
  #refused = new Map(); // id → why; forgotten with the page, so a reload tries again

  constructor(store, api) {
    super();
    this.#store = store;
    this.#api = api;
    addEventListener("online", () => this.sendNow());
    addEventListener("offline", () => this.#changed());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.sendNow();
    });
    store.onOtherTab(() => this.#changed());
  }

  /** All answers given here to tasks that are not done yet, oldest first. */
  answers() {
    return this.#store.all("answer:").sort((a, b) => a.at - b.at);
  }

  waiting() {
    return this.answers().filter((answer) => !answer.acknowledged);
  }

  answered(item) {
    return this.answers().some((answer) => answer.item === item);
  }

  /** The newest answer to an item that this browser still has: { values, seconds, … }. */
  lastAnswer(item) {
    return this.answers().findLast((answer) => answer.item === item) ?? null;
  }

  get status() {
    const waiting = this.waiting().length;
    const reasons = [...this.#refused.values()];
    return {
      waiting,
      sending: this.#sending,
      offline: !navigator.onLine,
      failing: this.#backoff.failures > 0,
      refused: reasons.length,
      reason: reasons[0] ?? null,
    };
  }

  add(task, item, values, seconds) {
    const id = uuid();
    this.#save({ id, task, item, values, seconds, at: Date.now(), acknowledged: false });
    this.sendNow();
  }

  /** Stops waiting, and sends what there is. */
  sendNow() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#refused.clear();
    void this.#send();
  }

  /** Resolves as soon as nothing waits. */
  async empty() {
    while (this.waiting().length > 0) {
      await new Promise((resolve) => this.addEventListener("change", resolve, { once: true }));
    }
  }

  /** Marks the answers of a task as unsent: the server says that some are missing. */
  sendAgain(task) {
    for (const answer of this.answers()) if (answer.task === task) this.#save({ ...answer, acknowledged: false });
    this.sendNow();
  }

  /** Forgets acknowledged answers, except those of the task that is still open. */
  forget(openTask = null) {
    for (const answer of this.answers()) {
      if (answer.task !== openTask && answer.acknowledged) this.#store.remove(`answer:${answer.id}`);
    }
    this.#changed();
  }

  #save(answer) {
    this.#store.set(`answer:${answer.id}`, answer);
    this.#changed();
  }

  async #send() {
    if (this.#sending) return;
    this.#sending = true;
    this.#changed();
    let alone = false; // one by one, after a batch was refused: one bad answer must not keep the others back
    try {
      for (;;) {
        const batch = this.waiting()
          .filter((answer) => !this.#refused.has(answer.id))
          .slice(0, alone ? 1 : BATCH);
        if (batch.length === 0) break;
        try {
          await this.#deliver(batch);
        } catch (error) {
          if (!(error instanceof Refused) || error.temporary) throw error;
          alone = !this.#sortOut(batch, error);
        }
      }
    } catch (error) {
      this.#timer = setTimeout(() => this.sendNow(), this.#backoff.next(error.retryAfter));
    } finally {
      this.#sending = false;
      this.#changed();
    }
  }

  async #deliver(batch) {
    const sent = batch.map(({ id, item, values, seconds }) => ({ id, item, values, seconds }));
    const { stored } = await this.#api.answer(sent);
    this.#acknowledge(batch, stored);
    if (stored.length > 0) this.#backoff.reset(); // it is there; the rest need not wait long
    if (batch.some((answer) => !stored.includes(answer.id))) throw new Error("the server did not confirm every answer");
  }

  /** After a refusal: what is stored, what is not and why. False if the server did not tell them apart. */
  #sortOut(batch, { body, message }) {
    this.#acknowledge(batch, body?.stored ?? []);
    this.#backoff.reset(); // a refusal is an answer, too: the connection works
    const refused = Object.entries(body?.refused ?? {});
    for (const [id, reason] of refused) this.#refused.set(id, reason);
    if (refused.length === 0 && batch.length === 1) this.#refused.set(batch[0].id, message);
    return refused.length > 0;
  }

  #acknowledge(batch, stored) {
    for (const answer of batch) if (stored.includes(answer.id)) this.#save({ ...answer, acknowledged: true });
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
