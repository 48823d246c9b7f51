// One item: the conversation, the replies, and the questions of the study's kind.

import { conversation } from "./conversation.js";
import { pointOut } from "./choices.js";
import { announce, element } from "./dom.js";
import { ab } from "./kind-ab.js";
import { drag } from "./kind-drag.js";
import { emotion } from "./kind-emotion.js";
import { likert } from "./kind-likert.js";
import { VisibleTimer } from "./timer.js";

const KINDS = { ab, drag, emotion, likert };

export class ItemView {
  #kind;
  #timer;
  #values;
  #strings;
  #study;
  checked = false; // whether the feedback of a practice item has been shown

  /** `draft` is what was chosen before, with the seconds it took; `changed` is called after every choice. */
  constructor({ study, item, title, practice, strings, draft, changed }) {
    this.item = item;
    this.#study = study;
    this.#strings = strings;
    this.#values = structuredClone(draft?.values ?? {});
    this.#timer = new VisibleTimer(draft?.seconds ?? 0);
    this.checks = Boolean(practice && item.expected); // whether the first press only gives feedback
    const onChange = () => {
      this.#clearFeedback();
      this.#count();
      changed();
    };
    this.#kind = KINDS[study.kind]({ item, study, strings, values: this.#values, changed: onChange });
    this.counter = element("span", { class: "counter soft small" });
    this.node = element(
      "article",
      { class: `item kind-${study.kind}` },
      element(
        "div",
        { class: "item-head" },
        element("h1", { tabindex: -1 }, title),
        practice ? element("p", { class: "notice small" }, strings.practiceNote) : null,
      ),
      this.#conversation(item),
      this.#kind.node,
    );
    this.#count();
  }

  get draft() {
    return { values: this.#values, seconds: this.#timer.seconds };
  }

  /** The answer, or null after pointing out what is missing or showing feedback. */
  submit() {
    const missing = this.#kind.missing();
    if (missing.length === 0 && this.checks && !this.checked) return this.#giveFeedback();
    if (missing.length === 0) return { values: structuredClone(this.#values), seconds: this.#timer.stop() };
    pointOut(missing, this.#strings.missingMark);
    const { missingOne, missingCards, missing: several } = this.#strings;
    if (this.#kind.total === 1) announce(missingOne);
    else announce((this.#study.kind === "drag" ? missingCards : several)(missing.length));
    return null;
  }

  close() {
    this.#timer.stop();
  }

  /** Beside the replies a long conversation scrolls by itself; then the keyboard must reach it. */
  #conversation(item) {
    const node = conversation(item, this.#strings);
    new ResizeObserver(() => {
      if (node.scrollHeight > node.clientHeight + 1) node.tabIndex = 0;
      else node.removeAttribute("tabindex");
    }).observe(node);
    return node;
  }

  #giveFeedback() {
    this.checked = true;
    const notes = Object.entries(this.item.expected).map(([key, wanted]) => {
      const right = wanted.includes(this.#values[key]);
      const text = right ? this.#strings.feedbackRight : this.#strings.feedbackWrong;
      this.#kind.groups.get(key)?.append(element("p", { class: `feedback ${right ? "right" : "wrong"}` }, text));
      return [key, right, text];
    });
    const wrong = notes.find(([, right]) => !right) ?? notes[0];
    announce(this.#kind.total > 1 ? `${this.#strings.reply(wrong[0])}: ${wrong[2]}` : wrong[2]);
    this.node.querySelector(".feedback")?.scrollIntoView({ block: "nearest" });
    return null;
  }

  #clearFeedback() {
    for (const note of this.node.querySelectorAll(".feedback")) note.remove();
  }

  #count() {
    const { total } = this.#kind;
    const done = total - this.#kind.missing().length;
    this.counter.textContent = total > 1 ? this.#strings.answered(done, total) : "";
  }
}
