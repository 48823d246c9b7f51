// What stands behind a reply, folded away under it: the emotion heard, the plan, the other candidates, the reasons.

import { languageOf, make } from "./dom.js";
import { labelMeaning, labelName, percent, t } from "./i18n.js";

const SHOWN = 4; // of the likeliest emotions
const LEAST = 0.01; // what is less likely is not worth a line
const MOST = 8; // other candidates
const SHOWN_ELSEWHERE = new Set(["care", "does", "probability", "likeliest", "vetoed"]);

function isShare(value) {
  return typeof value === "number" && value >= 0 && value <= 1;
}

function withChance(name, share) {
  return isShare(share) ? `${labelName(name)} (${percent(share)})` : labelName(name);
}

// { name, probability } as the server gives it, or null.
function believed(value) {
  return typeof value?.name === "string" && value.name ? value : null;
}

function summaryText(details) {
  const parts = [];
  const emotion = believed(details.emotion);
  const label = believed(details.label);
  if (emotion) parts.push(t("heard", { emotion: labelName(emotion.name) }));
  if (label) parts.push(t("does", { label: labelName(label.name) }));
  return parts.join(" · ") || t("why");
}

// The bar is for the eye; the number beside it says the same.
function chanceRow([name, share]) {
  const filled = make("i");
  filled.style.width = `${100 * share}%`;
  return make(
    "li",
    {},
    make("span", {}, labelName(name)),
    make("span", { class: "meter", "aria-hidden": "true" }, filled),
    make("span", { class: "number" }, percent(share)),
  );
}

// The likeliest of a distribution as bars; null where there is none.
function chanceList(distribution) {
  const likeliest = Object.entries(distribution ?? {})
    .filter(([, share]) => isShare(share) && share >= LEAST)
    .sort((a, b) => b[1] - a[1])
    .slice(0, SHOWN);
  return likeliest.length ? make("ul", { class: "chances" }, ...likeliest.map(chanceRow)) : null;
}

function heardSection(details) {
  const likeliest = chanceList(details.emotions);
  if (likeliest) return section(t("whyHeard"), likeliest);
  const emotion = believed(details.emotion);
  return emotion && section(t("whyHeard"), make("p", {}, withChance(emotion.name, emotion.probability)));
}

function planSection(details) {
  const label = believed(details.label);
  if (!label) return null;
  const meaning = labelMeaning(label.name);
  const words = withChance(label.name, label.probability) + (meaning && ` — ${meaning}`);
  const likeliest = chanceList(details.reasons?.likeliest);
  return section(
    t("whyPlan"),
    make("p", {}, words),
    likeliest && make("p", { class: "small soft" }, t("whyLikeliest")),
    likeliest,
  );
}

// Texts in a list, each with a remark or none: [[text, remark], …].
function textsSection(title, texts) {
  if (!texts.length) return null;
  const items = texts.map(([text, remark]) =>
    make("li", { dir: "auto", lang: languageOf(text) }, text, remark && make("span", { class: "soft" }, ` ${remark}`)),
  );
  return section(title, make("ul", { class: "others" }, ...items));
}

function shown(value) {
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (value && typeof value === "object") {
    return Object.entries(value).map(([name, part]) => `${labelName(name)} ${shown(part)}`).join(", ");
  }
  return typeof value === "number" && !Number.isInteger(value) ? value.toFixed(2) : String(value);
}

function reasonsSection(reasons) {
  const entries = Object.entries(reasons).filter(
    ([name, value]) => !SHOWN_ELSEWHERE.has(name) && !(name === "heard" && Array.isArray(value)) && value !== null,
  );
  if (!entries.length) return null;
  const names = t("reasons");
  const title = (name) => (Object.hasOwn(names, name) ? names[name] : name);
  const rows = entries.flatMap(([name, value]) => [make("dt", {}, title(name)), make("dd", {}, shown(value))]);
  return section(t("whyMore"), make("dl", {}, ...rows));
}

function section(title, ...content) {
  return make("section", {}, make("h3", {}, title), ...content);
}

// The candidates that were not said. What should not be said for a reason is listed among the reasons, as "text (reason)".
function otherCandidates(details, said) {
  const given = Array.isArray(details.candidates) ? details.candidates : [];
  const vetoed = Array.isArray(details.reasons?.vetoed) ? details.reasons.vetoed.map(String) : [];
  const texts = given.filter((text) => typeof text === "string" && text.trim() && text !== said);
  return [...new Set(texts)].slice(0, MOST).map((text) => {
    const veto = vetoed.find((one) => one.startsWith(`${text} (`));
    return [text, veto ? veto.slice(text.length + 1) : ""];
  });
}

// How each turn was heard, where there are several.
function turnsHeard(reasons) {
  const heard = reasons?.heard;
  if (!Array.isArray(heard) || heard.length < 2) return {};
  return { heard: heard.map((name) => (name ? labelName(name) : "…")).join(" → ") };
}

// Several candidates were weighed, or they can be found now.
function othersSection(details, said, onFind) {
  if (details.candidates?.length) {
    const others = otherCandidates(details, said);
    return textsSection(t("whyOthers"), others.length ? others : [[t("whyNoOthers"), ""]]);
  }
  return make("button", { class: "quiet", type: "button", onclick: onFind }, t("whyFind"));
}

// `onFind` looks for the candidates of a reply that was written alone; it is given the button.
export function why(exchange, onFind) {
  const { reply } = exchange;
  const details = reply.details ?? {};
  const model = make("p", { class: "small soft" }, t("whyModel", { model: reply.model ?? exchange.model }));
  if (details.care) {
    const fixed = details.care.kind === "language" ? t("whyLanguage") : t("whyCare");
    return folded(t("why"), [make("p", { class: "small soft" }, fixed)]);
  }
  return folded(summaryText(details), [
    heardSection(details),
    planSection(details),
    othersSection(details, reply.text, (event) => onFind(event.currentTarget)),
    textsSection(t("whyEarlier"), exchange.earlier.map((one) => [one.text, ""])),
    reasonsSection({ ...details.reasons, ...turnsHeard(details.reasons) }),
    model,
  ]);
}

function folded(summary, parts) {
  return make(
    "details",
    { class: "why" },
    make("summary", { class: "plain" }, summary),
    make("div", { class: "why-body" }, ...parts.filter(Boolean)),
  );
}
