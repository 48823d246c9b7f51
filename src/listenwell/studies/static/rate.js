// The page of one rater: asks the server where they are, shows it, and goes on from there.
//
// welcome → instructions → practice → items → thanks. The server knows which task is open; this browser knows which of
// its items are answered already, sent or not. Together they survive reloads, restarts and days without a network.

import { Api, Refused } from "./api.js";
import { Frame, download } from "./frame.js";
import { ItemView } from "./item.js";
import { Backoff, Outbox } from "./outbox.js";
import { Store } from "./storage.js";
import { stringsFor } from "./strings.js";
import * as views from "./views.js";

const LONG_TASK = 5; // items after which a pause is offered

class RatingPage {
  constructor(token) {
    this.store = new Store(token);
    this.api = new Api(token);
    this.outbox = new Outbox(this.store, this.api);
    this.frame = new Frame(() => this.tryNow());
    this.frame.onDownload = () => download(this.outbox.waiting());
    this.strings = stringsFor(navigator.language);
    this.state = null;
    this.view = null; // the item on the screen
    this.wake = null; // ends a wait before the next attempt
    this.outbox.addEventListener("change", () => this.onOutbox());
    addEventListener("online", () => this.wake?.());
    addEventListener("pagehide", () => this.saveDraft());
    document.addEventListener("visibilitychange", () => document.hidden && this.saveDraft());
    addEventListener("beforeunload", (event) => {
      if (this.outbox.waiting().length > 0) event.preventDefault();
    });
  }

  async start() {
    this.frame.show(views.textPage(this.strings.connecting, []));
    await this.load();
    this.outbox.sendNow();
  }

  tryNow() {
    this.wake?.();
    this.outbox.sendNow();
  }

  /** Repeats a request until it succeeds or is refused for good. */
  async persist(request, onFailure = () => {}) {
    const backoff = new Backoff();
    for (;;) {
      try {
        return await request();
      } catch (error) {
        if (error instanceof Refused && !error.temporary) throw error;
        onFailure();
        await new Promise((resolve) => {
          this.wake = resolve;
          setTimeout(resolve, backoff.next(error.retryAfter));
        });
        this.wake = null;
      }
    }
  }

  /** Asks where this rater is, and shows that. `finished` is the task that was just completed. */
  async load(finished = null) {
    try {
      this.state = await this.persist(
        () => this.api.state(),
        () => this.frame.say(this.strings.loadFailed, "offline", this.strings),
      );
    } catch (error) {
      this.frame.quiet();
      return this.showRefusal(error);
    }
    this.frame.quiet();
    const { study, task } = this.state;
    if (task) task.practice = this.state.state === "practice";
    this.strings = stringsFor(study.language);
    this.frame.useStudy(study, this.strings);
    this.outbox.forget(task?.id ?? null);
    this.show(finished);
    this.onOutbox();
  }

  show(finished) {
    const { state, task, progress, study, completion_code: code } = this.state;
    const strings = this.strings;
    if (state === "done") return this.showClosing();
    if (state === "closed" || state === "used-up") {
      const closed = state === "closed";
      const notes = [closed ? strings.closedNote : strings.usedUpNote];
      return this.page(closed ? strings.closedTitle : strings.usedUpTitle, notes, [], code);
    }
    if (!task) {
      return this.page(strings.nothingTitle, [strings.nothingNote], [[strings.checkAgain, () => this.load()]], code);
    }
    if (task.id === finished?.id) return this.showRefusal({ message: `${task.id} is still open` });
    if (finished?.practice) {
      const actions = [[strings.startRating, () => this.nextItem()]];
      return this.page(strings.practiceOver, [strings.practiceOverNote], actions);
    }
    if (finished && (code || finished.items.length >= LONG_TASK)) {
      const notes = [strings.pauseNote, strings.soFar(progress.done, progress.total)];
      return this.page(strings.pauseTitle, notes, [[strings.resume, () => this.nextItem()]], code);
    }
    if (this.store.get("introduced") || progress.done > 0) return this.nextItem();
    const instructions = () => {
      const label = task.practice ? strings.startPractice : strings.startRating;
      this.showPage(views.instructionsPage(study, strings, label, () => this.begin()));
    };
    return this.showPage(views.welcome(study, strings, instructions));
  }

  begin() {
    this.store.set("introduced", true);
    this.nextItem();
  }

  page(title, notes, actions, code = null) {
    this.showPage(views.textPage(title, notes, actions, views.completionCode(code, this.strings)));
  }

  showPage(node) {
    this.view?.close();
    this.view = null;
    this.frame.show(node);
    this.onOutbox();
  }

  showRefusal(error) {
    const { strings } = this;
    if (error.status === 404) return this.page(strings.unknownTitle, [strings.unknownNote], []);
    if (error.status === 410) return this.page(strings.closedTitle, [strings.closedNote], []);
    return this.page(strings.brokenTitle, [strings.brokenNote(error.message)], [[strings.tryNow, () => this.load()]]);
  }

  showClosing() {
    const draw = () => {
      const saved = this.outbox.waiting().length === 0;
      this.showPage(views.closing(this.strings, this.state.completion_code, saved));
      if (!saved) void this.outbox.empty().then(draw);
    };
    draw();
  }

  /** The first item without an answer; if there is none, the task is complete. */
  nextItem() {
    const { task } = this.state;
    const open = task.items.find((item) => !this.isAnswered(item));
    if (open) this.showItem(open);
    else void this.finishTask();
  }

  isAnswered(item) {
    return this.state.task.answered?.includes(item.id) || this.outbox.answered(item.id);
  }

  showItem(item) {
    this.view?.close();
    const { task, study } = this.state;
    const { strings } = this;
    const { practice, items } = task;
    const title = practice ? strings.practice : strings.item(items.indexOf(item) + 1, items.length);
    const draft = this.store.get(`draft:${item.id}`) ?? this.outbox.lastAnswer(item.id);
    this.view = new ItemView({ study, item, title, practice, strings, draft, changed: () => this.saveDraft() });
    this.view.isNew = !this.isAnswered(item);
    this.frame.show(this.view.node, { rating: true });
    const done = items.filter((one) => this.isAnswered(one)).length;
    this.frame.progress(done, items.length, practice ? strings.practice : strings.progress(done, items.length));
    this.frame.actions(this.nextLabel(item), () => this.submit(), this.view.counter);
    const earlier = this.earlierItem(item);
    this.frame.back(earlier ? () => this.goBack(earlier) : null);
    this.onOutbox();
  }

  goBack(item) {
    this.saveDraft();
    this.showItem(item);
  }

  nextLabel(item) {
    const { practice, items } = this.state.task;
    if (this.view.checks) return this.strings.check;
    const last = !practice && items.every((one) => one === item || this.isAnswered(one));
    return last ? this.strings.finish : this.strings.next;
  }

  /** The item before this one whose answer this browser still has, and can show. */
  earlierItem(item) {
    const { items } = this.state.task;
    return items.slice(0, items.indexOf(item)).findLast((one) => this.outbox.lastAnswer(one.id));
  }

  saveDraft() {
    if (this.view) this.store.set(`draft:${this.view.item.id}`, this.view.draft);
  }

  submit() {
    const { view } = this;
    if (!view) return;
    const answer = view.submit();
    if (!answer) {
      if (view.checked) this.frame.actions(this.strings.begin, () => this.submit(), view.counter);
      return;
    }
    this.view = null; // from here on the outbox has it
    const before = this.outbox.lastAnswer(view.item.id);
    if (JSON.stringify(before?.values) !== JSON.stringify(answer.values)) {
      this.outbox.add(this.state.task.id, view.item.id, answer.values, answer.seconds);
    }
    this.store.remove(`draft:${view.item.id}`);
    this.nextItem();
  }

  /** Closes the task once the server has all its answers, however long that takes. */
  async finishTask() {
    const { task } = this.state;
    const { strings } = this;
    this.frame.busy();
    const slow = setTimeout(() => this.page(strings.savingTitle, [strings.savingNote], []), 400);
    try {
      await this.outbox.empty();
      await this.persist(() => this.closeTask(task));
    } catch (error) {
      clearTimeout(slow);
      return this.showRefusal(error);
    }
    clearTimeout(slow);
    return this.load(task);
  }

  async closeTask(task) {
    try {
      await this.api.finish(task.id);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 409) throw error;
      // The server misses answers that it once acknowledged, say after its backup was restored.
      this.outbox.sendAgain(task.id);
      await this.outbox.empty();
      await this.api.finish(task.id);
    }
  }

  onOutbox() {
    const any = this.state?.progress.done > 0 || this.outbox.answers().length > 0;
    this.frame.status(this.outbox.status, { volatile: this.store.volatile, any });
    // Answered in another tab meanwhile: go on.
    if (this.view?.isNew && this.outbox.answered(this.view.item.id)) this.nextItem();
  }
}

const token = decodeURIComponent(location.pathname.replace(/\/+$/, "").split("/").pop());
void new RatingPage(token).start();
