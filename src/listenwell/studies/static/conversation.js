// The conversation that the replies continue, and the reply of the corpus where raters may see it.

import { element, prose } from "./dom.js";

export function conversation(item, strings) {
  const turns = item.context.map(({ speaker, text }) =>
    element(
      "li",
      { class: `turn ${speaker === "speaker" ? "from-speaker" : "from-listener"}` },
      element("span", { class: "who" }, speaker === "speaker" ? strings.speaker : strings.listener),
      prose(text, { class: "bubble" }),
    ),
  );
  return element(
    "section",
    { class: "conversation", "aria-labelledby": "conversation-heading" },
    element("h2", { id: "conversation-heading" }, strings.conversation),
    element("ol", { class: "turns" }, turns),
    item.reference ? reference(item.reference, strings) : null,
  );
}

function reference(text, strings) {
  return element(
    "figure",
    { class: "reference" },
    element("figcaption", {}, strings.reference),
    prose(text, {}, "blockquote"),
  );
}

/** "Reply A", or just "Reply" if there is only one. */
export function replyName(item, key, strings) {
  return item.replies.length === 1 ? strings.onlyReply : strings.reply(key);
}

/** A reply as a card with its name; the questions about it follow inside. */
export function replyCard(item, reply, strings, ...children) {
  const heading = element("h2", { class: "reply-name" }, replyName(item, reply.key, strings));
  return element("section", { class: "reply panel" }, heading, prose(reply.text, { class: "reply-text" }), children);
}
