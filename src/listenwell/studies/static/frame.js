// What surrounds every page: title and progress above, notices, and below whether the answers are saved.

import { announce, element } from "./dom.js";
import { instructionsDialog } from "./views.js";

const byId = (id) => document.getElementById(id);

export class Frame {
  constructor(onTry) {
    this.main = byId("main");
    this.top = byId("top");
    this.bottom = byId("bottom");
    this.notice = byId("notice");
    this.onTry = onTry;
    this.strings = null;
    this.dialog = null;
  }

  useStudy(study, strings) {
    this.strings = strings;
    document.documentElement.lang = study.language || "en";
    document.title = study.title;
    this.dialog?.remove();
    this.dialog = instructionsDialog(study, strings);
    document.body.append(this.dialog);
    byId("study-title").textContent = study.title;
    const open = byId("open-instructions");
    open.textContent = strings.instructions;
    open.onclick = () => this.dialog.showModal();
  }

  /** Replaces the page, and lets a screen reader start at its heading. */
  show(node, { rating = false } = {}) {
    this.main.replaceChildren(node);
    this.top.hidden = !rating;
    byId("next").hidden = !rating;
    byId("next").disabled = false;
    byId("back").hidden = true;
    byId("counter").replaceChildren();
    document.body.classList.toggle("rating", rating);
    scrollTo(0, 0);
    node.querySelector("h1")?.focus({ preventScroll: true });
  }

  progress(done, total, label) {
    const bar = byId("progress");
    bar.max = Math.max(total, 1);
    bar.value = done;
    bar.setAttribute("aria-label", label);
    byId("progress-text").textContent = label;
  }

  actions(label, onclick, counter) {
    const next = byId("next");
    next.textContent = label;
    next.onclick = onclick;
    byId("counter").replaceChildren(counter);
  }

  /** Offers the way back to the item before, if there is one. */
  back(onclick) {
    const button = byId("back");
    button.textContent = this.strings.back;
    button.hidden = onclick === null;
    button.onclick = onclick;
  }

  /** Between the last item and what follows, nothing is to be pressed. */
  busy() {
    byId("next").disabled = true;
    byId("back").hidden = true;
  }

  /** Says whether answers are saved, on their way or waiting, and why. */
  status(status, { volatile, any }) {
    if (!this.strings) return;
    const [state, text] = this.#saved(status, any);
    const node = byId("saved");
    node.dataset.state = state;
    if (node.textContent !== text) node.textContent = text;
    this.bottom.hidden = byId("next").hidden && status.waiting === 0;
    if (status.refused) this.say(this.strings.refusedNotice(status.refused, status.reason), "refused");
    else if (status.offline || (status.failing && status.waiting)) this.say(this.strings.offlineNotice, "offline");
    else if (volatile) this.say(this.strings.volatileNotice, "volatile");
    else this.quiet();
  }

  #saved(status, any) {
    if (status.refused) return ["failing", this.strings.refusedStatus(status.refused)];
    if (status.waiting && (status.failing || status.offline)) return ["failing", this.strings.waiting(status.waiting)];
    if (status.waiting) return ["sending", this.strings.sending];
    return ["saved", any ? this.strings.saved : this.strings.savedNone];
  }

  /** Shows a notice with what can be done about it; the same one is not announced twice. */
  say(text, kind, strings = this.strings) {
    if (!this.notice.hidden && this.notice.dataset.text === text) return;
    const button = (label, onclick) => element("button", { type: "button", class: "plain", onclick }, label);
    this.notice.dataset.text = text;
    this.notice.replaceChildren(
      element("p", {}, text),
      kind === "volatile" ? "" : button(strings.tryNow, () => this.onTry()),
      kind === "refused" ? button(strings.download, () => this.onDownload()) : "",
    );
    this.notice.hidden = false;
    announce(text);
  }

  quiet() {
    if (this.notice.contains(document.activeElement)) this.main.querySelector("h1")?.focus();
    this.notice.hidden = true;
    this.notice.replaceChildren();
  }
}

/** Gives the rater a file with answers that the server does not take. */
export function download(answers) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(answers, null, 2)], { type: "application/json" }));
  element("a", { href: url, download: "answers.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
