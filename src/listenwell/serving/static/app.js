// The page: connects what a person does with the conversation, and the conversation with what is shown.

import { Problem } from "./api.js";
import { openHelp, rememberResources } from "./care.js";
import { $, make } from "./dom.js";
import { otherLanguage, preferredLanguage, setLanguage, t } from "./i18n.js";
import { askForKey, connectKey, keyWasAccepted } from "./key.js";
import { asked, connectOptions, drawOptions, hasModels, loadModels, modelId } from "./options.js";
import { download, toJson, toMarkdown } from "./saving.js";
import * as store from "./store.js";
import * as talk from "./talk.js";
import { drawTheme, switchTheme } from "./theme_switch.js";
import { draw, drawText, topOfLast, whyOf } from "./view.js";

let editing = null; // the id of the exchange whose message is in the field, to be replaced
let draftBefore = ""; // what was in the field before the editing began
const field = $("message");

// Showing

function render() {
  const live = talk.current();
  draw(store.load().exchanges, live, actions);
  $("send").hidden = live !== null;
  $("stop").hidden = live === null;
  const isEmpty = store.load().exchanges.length === 0;
  for (const id of ["save-markdown", "save-json", "delete"]) $(id).disabled = isEmpty;
}

function isAtEnd() {
  const { scrollHeight, clientHeight } = document.documentElement;
  return scrollHeight - scrollY - clientHeight < 80;
}

// Keeps the end in view while a reply grows, if the reader is there, until the message it answers would leave the top.
function following(work) {
  const follow = isAtEnd();
  work();
  if (follow) scrollToEnd();
}

function scrollToEnd() {
  const { scrollHeight, clientHeight } = document.documentElement;
  scrollTo({ top: Math.min(scrollHeight - clientHeight, topOfLast()) });
}

// For screen readers: whole sentences, once, not every word of a reply as it comes.
function announce(text) {
  $("announcer").textContent = text;
}

const WAITING = { asking: "writing", offline: "waitOffline", broken: "waitBroken", tab: "waitTab" };
let announcedPhase = null;

function onTalkChanged() {
  following(render);
  const live = talk.current();
  const phase = live?.phase ?? null;
  if (phase === announcedPhase) return; // a count-down is told once
  announcedPhase = phase;
  if (phase === "busy") announce(t("waitBusy", { seconds: live.seconds }));
  else if (phase) announce(t(WAITING[phase]));
}

function notice(text, actionName = null, onclick = null) {
  const box = $("notice");
  box.replaceChildren(text);
  if (actionName) {
    const run = () => {
      hideNotice();
      onclick();
    };
    box.append(" ", make("button", { class: "plain", type: "button", onclick: run }, t(actionName)));
  }
  box.hidden = !text;
}

function hideNotice() {
  notice("");
  if (!navigator.onLine) notice(t("offline"));
  else if (!store.isLasting()) notice(t("noStorage"));
}

// The field

function fitField() {
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight + 2, innerHeight * 0.4)}px`;
}

function setField(text) {
  field.value = text;
  if (!editing) store.saveDraft(text);
  fitField();
}

// What is in the field is kept over a reload, too.
function onInput() {
  if (!editing) store.saveDraft(field.value);
  fitField();
}

function send() {
  const text = field.value.trim();
  if (!text || talk.current()) return;
  const last = store.last();
  if (last?.state === "pending") {
    talk.answer(last.id); // another tab began with it; the new message waits in the field
    return;
  }
  const model = modelId();
  if (model) store.saveSettings({ model }); // from now on another language of the page does not change who replies
  const id = store.add(text, model, asked(), editing);
  const draft = editing ? draftBefore : "";
  editing = null;
  setField(draft);
  hideNotice();
  $("options").open = false;
  talk.answer(id);
  scrollToEnd();
}

function onKey(event) {
  // Enter that ends the composition of a Chinese word is not meant to send.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  send();
}

function onEscape(event) {
  if (event.key !== "Escape" || event.isComposing || document.querySelector("dialog[open], :popover-open")) return;
  if ($("options").open) {
    $("options").open = false;
    $("options").querySelector("summary").focus();
  } else if (talk.current()) talk.stop();
  else if (editing) cancelEditing();
}

function noticeEditing() {
  notice(t("editing"), "cancel", cancelEditing);
}

function cancelEditing() {
  editing = null;
  setField(draftBefore);
  hideNotice();
  field.focus();
}

// What can be done with the last exchange

const actions = {
  help: openHelp,
  retry(id) {
    if (talk.current()) return;
    hideNotice();
    store.askOther(id, modelId() ?? store.find(id).model, asked());
    talk.answer(id);
    field.focus();
  },
  ask(id) {
    if (talk.current()) return;
    hideNotice();
    store.reopen(id, modelId() ?? store.find(id).model, asked());
    talk.answer(id);
    field.focus();
  },
  async find(id, button) {
    button.disabled = true;
    try {
      await talk.findCandidates(id);
      whyOf(id)?.focus();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      button.disabled = false;
      notice(error.kind === "refused" ? error.message : t(error.kind === "busy" ? "problemBusy" : "whyNotFound"));
    }
  },
  edit(id) {
    if (!editing) draftBefore = field.value;
    editing = id;
    setField(store.find(id).text);
    noticeEditing();
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  },
  undo(id) {
    if (editing) cancelEditing();
    const exchange = store.remove(id);
    notice(t("undone"), "putBack", () => {
      store.putBack(exchange);
      field.focus();
    });
    field.focus();
  },
};

const OUTCOMES = { kept: "keptEarlier", same: "noOther", returned: "stoppedEarly" };

function onEnded({ kind }, exchange) {
  if (kind === "returned") {
    // What was written meanwhile is not overwritten.
    setField(field.value.trim() ? `${exchange.text}\n${field.value}` : exchange.text);
  }
  if (kind in OUTCOMES) notice(t(OUTCOMES[kind]));
  else if (kind === "failed") announce(document.querySelector(".exchange:last-child .trouble")?.textContent ?? "");
  else announce(`${t("says")} ${exchange.reply.text.trim() || t("empty")}`);
  if (!hasModels()) refreshModels();
}

// The models, and with them the resources: both need the key, if there is one.
async function refreshModels() {
  try {
    await loadModels();
    keyWasAccepted();
    rememberResources();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.kind === "key" && (await askForKey())) await refreshModels();
    else if (error.kind === "key") notice(t("keyNeeded"), "keyUse", refreshModels);
    else if (navigator.onLine) notice(t("problemModels"), "ask", refreshModels);
  }
}

async function anyModel() {
  if (!hasModels()) await loadModels();
  const model = modelId();
  if (!model) throw new Problem("server");
  return model;
}

// The language

function useLanguage(code) {
  setLanguage(code);
  const button = $("language");
  button.textContent = t("other");
  button.lang = otherLanguage() === "zh" ? "zh-Hans" : "en";
  button.setAttribute("aria-label", t("otherLabel"));
  $("starters").replaceChildren(
    ...t("starters").map((text) =>
      make("li", {}, make("button", { class: "quiet", type: "button", onclick: () => start(text) }, text)),
    ),
  );
  drawOptions();
  drawTheme();
  render();
}

function start(text) {
  setField(text);
  field.focus();
  field.setSelectionRange(text.length, text.length);
}

function switchLanguage() {
  store.saveSettings({ language: otherLanguage() });
  useLanguage(otherLanguage());
  if (editing) noticeEditing();
  else hideNotice();
  if (hasModels()) rememberResources();
}

// The conversation as a whole

function save(make, type, ending) {
  $("menu").hidePopover();
  download(make(store.load()), type, ending);
}

function deleteConversation() {
  $("delete-dialog").close();
  talk.stop();
  editing = null;
  store.clear();
  setField("");
  notice(t("deleted"));
  field.focus();
}

function connectDialogs() {
  for (const dialog of document.querySelectorAll("dialog")) {
    for (const button of dialog.querySelectorAll("[data-close]")) {
      button.addEventListener("click", () => dialog.close());
    }
    // A click beside the dialog closes it.
    dialog.addEventListener("pointerdown", (event) => {
      const box = dialog.getBoundingClientRect();
      const inside =
        event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
      if (event.target === dialog && !inside) dialog.close();
    });
  }
  $("help").addEventListener("click", openHelp);
  $("delete").addEventListener("click", () => {
    $("menu").hidePopover();
    $("delete-dialog").showModal();
  });
  $("delete-confirm").addEventListener("click", deleteConversation);
  $("save-markdown").addEventListener("click", () => save(toMarkdown, "text/markdown", "md"));
  $("save-json").addEventListener("click", () => save(toJson, "application/json", "jsonl"));
}

function connect() {
  talk.connect({
    changed: onTalkChanged,
    growing: (id, text) => following(() => drawText(id, text)),
    askForKey,
    anyModel,
    ended: onEnded,
  });
  store.onChange(() => following(render));
  connectOptions();
  connectDialogs();
  connectKey();
  $("language").addEventListener("click", switchLanguage);
  $("theme").addEventListener("click", switchTheme);
  $("stop").addEventListener("click", () => {
    talk.stop();
    field.focus();
  });
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  field.addEventListener("keydown", onKey);
  field.addEventListener("input", onInput);
  document.addEventListener("keydown", onEscape);
  addEventListener("pageshow", (event) => {
    if (event.persisted) resume();
  });
  addEventListener("offline", () => notice(t("offline")));
  addEventListener("online", () => {
    hideNotice();
    refreshModels();
  });
}

// A reload, a closed tab or a page that was put to sleep may have interrupted a reply.
function resume() {
  const last = store.last();
  if (last?.state === "pending") talk.answer(last.id);
}

async function begin() {
  connect();
  useLanguage(store.loadSettings().language ?? preferredLanguage());
  setField(store.loadDraft());
  scrollToEnd();
  hideNotice();
  resume();
  await refreshModels();
  // On a phone the keyboard would cover half of the page before anybody asked for it.
  if (matchMedia("(pointer: fine)").matches && !document.querySelector("dialog[open]")) field.focus();
}

begin();
