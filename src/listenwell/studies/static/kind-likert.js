// Ratings on scales, say empathy from 1 to 5.
//
// Short anchors ("none", "best") stand below the numbers, reply by reply. Anchors that are whole sentences would be
// repeated for every reply; with several replies they are shown once per scale, and all replies follow.

import { choiceGroup, chooseByDigit, clearMark, radio } from "./choices.js";
import { replyCard, replyName } from "./conversation.js";
import { element, prose } from "./dom.js";
import { meanings } from "./views.js";

const SHORT = 26; // characters that fit below a number

export function likert({ item, study, strings, values, changed }) {
  const groups = new Map();
  const context = { item, strings, values, changed, groups };
  const long = study.scales.some(isLong);
  const node = element("div", { class: "replies" });
  if (long && item.replies.length > 1) {
    node.append(...study.scales.map((scale) => scaleCard(context, scale)));
  } else {
    for (const reply of item.replies) {
      const scales = study.scales.map((scale) => question(context, reply, scale, long ? "rows" : "numbers"));
      node.append(replyCard(item, reply, strings, scales));
    }
  }
  return {
    node,
    total: groups.size,
    groups,
    missing: () => [...groups].filter(([key]) => get(values, key) === undefined).map(([, group]) => group),
  };
}

export function isLong(scale) {
  // A Chinese character is as wide as two Latin letters.
  const width = (text) => [...text].reduce((sum, letter) => sum + (letter > "\u2e7f" ? 2 : 1), 0);
  return Object.values(scale.anchors ?? {}).some((text) => width(text) > SHORT);
}

function points(scale) {
  return Array.from({ length: scale.max - scale.min + 1 }, (_, index) => scale.min + index);
}

const SEPARATOR = "\u0000";

function get(values, key) {
  const [reply, scale] = key.split(SEPARATOR);
  return values[reply]?.[scale];
}

/** One scale for one reply, as a row of numbers or as rows with what each number means. */
function question(context, reply, scale, form, legend = scale.name, sentence = scale.question) {
  const { item, values, changed, groups } = context;
  const choose = (value) => {
    (values[reply.key] ??= {})[scale.key] = value;
    clearMark(group);
    changed();
  };
  const option = (point) => {
    const anchor = scale.anchors?.[point];
    const label = form === "rows" ? rowLabel(point, anchor) : String(point);
    const chosen = values[reply.key]?.[scale.key] === point;
    const name = `${item.id}/${reply.key}/${scale.key}`;
    return radio({ name, value: point, label, note: form === "rows" ? null : anchor, chosen }, choose);
  };
  const row = element("div", { class: form === "rows" ? "rows" : "numbers" }, points(scale).map(option));
  const below = form === "numbers" ? anchorsBelow(scale) : null;
  const group = choiceGroup({ legend, question: sentence, extra: below }, row);
  chooseByDigit(group, Object.fromEntries(points(scale).map((point) => [String(point), point])));
  groups.set([reply.key, scale.key].join(SEPARATOR), group);
  return group;
}

function rowLabel(point, anchor) {
  return element(
    "span",
    { class: "row-label" },
    element("b", {}, String(point)),
    anchor ? prose(anchor, {}, "span") : null,
  );
}

/** What the numbers mean, each below its own; hidden from screen readers, which hear it with the number. */
function anchorsBelow(scale) {
  const anchors = points(scale).map((point) => [point, scale.anchors?.[point] ?? ""]);
  if (anchors.every(([, text]) => !text)) return null;
  const last = anchors.length - 1;
  const outstanding = anchors.filter((_, index) => [0, last / 2, last].includes(index));
  const few = anchors.every((anchor) => !anchor[1] || outstanding.includes(anchor));
  const cells = few ? outstanding : anchors;
  const style = few ? (cells.length === 3 ? "anchors three" : "anchors two") : "anchors each";
  const shown = cells.map(([point, text]) => element("span", { "data-point": point }, text));
  return element("div", { class: style, "aria-hidden": "true" }, shown);
}

/** One scale with what its numbers mean, then all replies. */
function scaleCard(context, scale) {
  const { item, strings } = context;
  const replies = item.replies.map((reply) => {
    const legend = replyName(item, reply.key, strings);
    const group = question(context, reply, scale, "plain-numbers", legend, reply.text);
    group.classList.add("about-reply");
    return group;
  });
  return element(
    "section",
    { class: "reply scale-card panel" },
    element("h2", { class: "scale-name" }, scale.name),
    prose(scale.question, { class: "sentence" }),
    meanings(scale),
    replies,
  );
}
