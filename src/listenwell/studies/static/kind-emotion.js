// Whether the emotion of a reply fits: 0 or 1; or, where a study asks for it, which emotion a reply expresses.

import { choiceGroup, chooseByDigit, clearMark, radio } from "./choices.js";
import { replyCard } from "./conversation.js";
import { element, prose } from "./dom.js";

export function emotion({ item, study, strings, values, changed }) {
  const groups = new Map();
  const cards = item.replies.map((reply) => {
    const choose = (value) => {
      values[reply.key] = value;
      clearMark(group);
      changed();
    };
    const ask = item.emotion_choices?.length ? pick : judge;
    const group = ask({ item, study, strings, reply, chosen: values[reply.key], choose });
    groups.set(reply.key, group);
    return replyCard(item, reply, strings, named(reply.emotion ?? item.emotion, strings), group);
  });
  return {
    node: element("div", { class: "replies" }, cards),
    total: groups.size,
    groups,
    missing: () => [...groups].filter(([key]) => values[key] === undefined).map(([, group]) => group),
  };
}

/** The emotion that the reply should express. */
function named(name, strings) {
  if (!name) return null;
  return element("p", { class: "emotion-name" }, `${strings.emotionOf} `, element("b", {}, name));
}

function judge({ item, study, strings, reply, chosen, choose }) {
  const scale = study.scales?.[0];
  const option = (value, word) => {
    const anchor = scale?.anchors?.[value];
    const below = anchor ? prose(anchor, { class: "anchor" }, "span") : null;
    const label = element("span", {}, element("b", {}, word), below);
    return radio({ name: `${item.id}/${reply.key}`, value, label, chosen: chosen === value }, choose);
  };
  const group = choiceGroup({ legend: scale?.question ?? strings.emotionQuestion, style: "judge" }, [
    element("div", { class: "pair" }, option(1, strings.yes), option(0, strings.no)),
  ]);
  chooseByDigit(group, { 1: 1, 0: 0, y: 1, n: 0 });
  return group;
}

function pick({ item, strings, reply, chosen, choose }) {
  const option = (label) =>
    radio({ name: `${item.id}/${reply.key}`, value: label, label, chosen: chosen === label }, choose);
  return choiceGroup({ legend: strings.pickEmotion, style: "pick" }, [
    element("div", { class: "many" }, item.emotion_choices.map(option)),
  ]);
}
