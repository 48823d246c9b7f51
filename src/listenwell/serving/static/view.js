// The conversation on the page. An exchange is drawn again only when something about it changed, so that what a reader
// opened stays open.

import { careCard } from "./care.js";
import { $, languageOf, make } from "./dom.js";
import { currentLanguage, t } from "./i18n.js";
import { why } from "./why.js";

const drawn = new Map(); // id → { signature, node }

// `live` is what is happening to a pending exchange: { id, text, phase, seconds }. `actions` are functions of an id.
export function draw(exchanges, live, actions) {
  const list = $("conversation");
  $("welcome").hidden = exchanges.length > 0;
  list.hidden = exchanges.length === 0;
  const nodes = exchanges.map((exchange, index) => {
    const isLast = index === exchanges.length - 1;
    const now = live?.id === exchange.id ? live : null;
    const signature = JSON.stringify([exchange, isLast, now?.phase, now?.seconds, currentLanguage()]);
    const before = drawn.get(exchange.id);
    if (before?.signature === signature) return before.node;
    const node = exchangeNode(exchange, isLast, now, actions);
    if (before?.node.querySelector(".why[open]")) node.querySelector(".why")?.setAttribute("open", "");
    drawn.set(exchange.id, { signature, node });
    return node;
  });
  for (const id of drawn.keys()) if (!exchanges.some((exchange) => exchange.id === id)) drawn.delete(id);
  arrange(list, nodes);
}

// Moves as little as possible: an element that is moved loses the focus that is in it.
function arrange(list, nodes) {
  for (const child of [...list.children]) if (!nodes.includes(child)) child.remove();
  nodes.forEach((node, index) => {
    if (list.children[index] !== node) list.insertBefore(node, list.children[index] ?? null);
  });
}

// The text of a reply while it grows.
export function drawText(id, text) {
  const node = drawn.get(id)?.node.querySelector(".growing");
  if (!node) return;
  node.textContent = text;
  node.parentElement.classList.add("started");
}

// What unfolds the reasons of a reply.
export function whyOf(id) {
  return drawn.get(id)?.node.querySelector(".why > summary");
}

// How far the page is scrolled when the last exchange begins right under the bar.
export function topOfLast() {
  const last = $("conversation").lastElementChild;
  return last ? last.offsetTop - document.querySelector(".bar").offsetHeight - 12 : 0;
}

function exchangeNode(exchange, isLast, live, actions) {
  return make(
    "li",
    { class: "exchange", "data-state": exchange.state },
    make(
      "div",
      { class: "said", dir: "auto", lang: languageOf(exchange.text) },
      make("span", { class: "visually-hidden" }, `${t("you")} `),
      exchange.text,
    ),
    exchange.state === "done" && replyNode(exchange, isLast, actions),
    exchange.state === "pending" && pendingNode(live),
    exchange.state === "failed" && failedNode(exchange, isLast, actions),
  );
}

function replyNode(exchange, isLast, actions) {
  const { text, details, stopped } = exchange.reply;
  const care = details?.care && details.care.kind !== "language" ? details.care : null;
  const body = care
    ? careCard(text, care, actions.help)
    : make("div", { class: "text", dir: "auto", lang: languageOf(text) }, text.trim() ? text : t("empty"));
  return make(
    "div",
    { class: "reply", role: "group", "aria-label": t("says") },
    body,
    stopped && make("p", { class: "small soft" }, t("stopped")),
    make("div", { class: "under" }, why(exchange, (button) => actions.find(exchange.id, button)), isLast && actionRow(exchange, actions, Boolean(details?.care))),
  );
}

// Words of care are fixed, so there is no other reply to ask for.
function actionRow({ id }, actions, isFixed) {
  return make(
    "div",
    { class: "actions" },
    !isFixed && action("retry", () => actions.retry(id)),
    action("edit", () => actions.edit(id)),
    action("undo", () => actions.undo(id)),
  );
}

function action(name, onclick) {
  return make("button", { class: "plain", type: "button", "data-action": name, onclick }, t(name));
}

function pendingNode(live) {
  const phase = live?.phase ?? "tab";
  const words = {
    offline: t("waitOffline"),
    broken: t("waitBroken"),
    busy: t("waitBusy", { seconds: live?.seconds }),
    tab: t("waitTab"),
  }[phase];
  return make(
    "div",
    { class: "reply", "aria-busy": "true" },
    make("div", { class: "dots", "aria-hidden": "true" }, make("i"), make("i"), make("i")),
    make("div", { class: "text growing", dir: "auto" }, live?.text ?? ""),
    words && make("p", { class: "waiting small soft" }, words),
  );
}

const PROBLEMS = { connection: "problemConnection", busy: "problemBusy", key: "keyNeeded", too_long: "problemTooLong" };

function failedNode({ id, problem }, isLast, actions) {
  const known = [problem?.code, problem?.kind].find((name) => Object.hasOwn(PROBLEMS, name));
  const words = known ? t(PROBLEMS[known]) : problem?.message || t("problemServer");
  return make(
    "div",
    { class: "reply" },
    make("p", { class: "trouble" }, words),
    isLast &&
      make(
        "div",
        { class: "actions" },
        action("ask", () => actions.ask(id)),
        action("edit", () => actions.edit(id)),
        action("undo", () => actions.undo(id)),
      ),
  );
}
