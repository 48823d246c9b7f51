// What a rater's browser keeps for one link: answers until the server has them for good, drafts, and where they were.
//
// Every answer has a key of its own, so that two tabs never overwrite each other's. Where the browser refuses to store
// anything (private windows, a full disk), a map in memory takes over, and the page warns before it is closed.

const NAMESPACE = "listenwell-study";

export class Store {
  #prefix;
  #memory = new Map();

  constructor(token) {
    this.#prefix = `${NAMESPACE}:${token}:`;
  }

  /** Whether something exists only in this page's memory, and would be gone with it. */
  get volatile() {
    return this.#memory.size > 0;
  }

  get(name) {
    const key = this.#prefix + name;
    if (this.#memory.has(key)) return this.#memory.get(key);
    try {
      return JSON.parse(localStorage.getItem(key));
    } catch {
      return null; // no storage, or something that is not ours
    }
  }

  set(name, value) {
    const key = this.#prefix + name;
    try {
      localStorage.setItem(key, JSON.stringify(value));
      this.#memory.delete(key);
    } catch {
      this.#memory.set(key, value);
    }
  }

  remove(name) {
    this.#memory.delete(this.#prefix + name);
    try {
      localStorage.removeItem(this.#prefix + name);
    } catch {
      // No storage: there was nothing to remove.
    }
  }

  /** All values whose names start like this. */
  all(start) {
    const wanted = this.#prefix + start;
    let keys = [...this.#memory.keys()];
    try {
      keys = [...new Set([...keys, ...Object.keys(localStorage)])];
    } catch {
      // No storage: memory has all there is.
    }
    return keys
      .filter((key) => key.startsWith(wanted))
      .map((key) => this.get(key.slice(this.#prefix.length)))
      .filter((value) => value !== null);
  }

  /** Calls back when another tab of the same study changed something. */
  onOtherTab(changed) {
    addEventListener("storage", (event) => {
      if (event.key === null || event.key.startsWith(this.#prefix)) changed();
    });
  }
}

/** A random id (version 4). `crypto.randomUUID` needs a secure context, and studies are served by plain HTTP, too. */
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
