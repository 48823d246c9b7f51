// Two replies side by side: which is better, about the same, or both bad.

import { choiceGroup, chooseByDigit, clearMark, radio } from "./choices.js";
import { replyName } from "./conversation.js";
import { element, prose } from "./dom.js";

const CHOICES = ["left", "right", "tie", "both-bad"];

export function ab({ item, study, strings, values, changed }) {
  const offered = study.choices?.length ? CHOICES.filter((choice) => study.choices.includes(choice)) : CHOICES;
  const choose = (choice) => {
    values.choice = choice;
    clearMark(group);
    changed();
  };
  const name = `${item.id}/choice`;
  const option = (value, label, style) => radio({ name, value, label, style, chosen: values.choice === value }, choose);
  const sides = item.replies.map((reply, index) => {
    const side = CHOICES[index];
    const heading = element(
      "span",
      { class: "reply-name" },
      `${replyName(item, reply.key, strings)} `,
      element("span", { class: "verdict" }, strings.choice[side]),
    );
    const label = element("span", {}, heading, prose(reply.text, { class: "reply-text" }, "span"));
    return option(side, label, "side");
  });
  const neither = offered.slice(2).map((choice) => option(choice, strings.choice[choice], "neither"));
  const group = choiceGroup({ legend: study.scales?.[0]?.question ?? strings.abQuestion, style: "ab" }, [
    element("div", { class: "sides" }, sides),
    element("div", { class: "neithers" }, neither),
  ]);
  chooseByDigit(group, Object.fromEntries(offered.map((choice, index) => [String(index + 1), choice])));
  return {
    node: element("div", { class: "replies" }, group),
    total: 1,
    groups: new Map([["choice", group]]),
    missing: () => (values.choice === undefined ? [group] : []),
  };
}
