// Seconds during which the page was visible. Another tab, a locked phone or a minimised window stops the clock.

export class VisibleTimer {
  #seconds;
  #since = null;
  #listener = () => (document.hidden ? this.#pause() : this.#resume());

  constructor(seconds = 0) {
    this.#seconds = seconds;
    document.addEventListener("visibilitychange", this.#listener);
    if (!document.hidden) this.#resume();
  }

  get seconds() {
    const running = this.#since === null ? 0 : (performance.now() - this.#since) / 1000;
    return Math.round((this.#seconds + running) * 1000) / 1000;
  }

  stop() {
    this.#pause();
    document.removeEventListener("visibilitychange", this.#listener);
    return this.seconds;
  }

  #resume() {
    this.#since ??= performance.now();
  }

  #pause() {
    if (this.#since === null) return;
    this.#seconds += (performance.now() - this.#since) / 1000;
    this.#since = null;
  }
}
