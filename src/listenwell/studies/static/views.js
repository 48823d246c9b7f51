// The pages around the ratings: welcome, instructions, pauses, the end, and links that lead nowhere.

import { element, paragraphs, prose } from "./dom.js";

/** A page of text. `actions` are [label, callback] pairs; the first is the main one. */
export function textPage(title, texts, actions = [], extra = null) {
  return element(
    "article",
    { class: "text-page" },
    element("h1", { tabindex: -1, dir: "auto" }, title),
    element("div", { class: "prose" }, paragraphs(texts)),
    extra,
    actions.length ? element("div", { class: "choices" }, actions.map(button)) : null,
  );
}

function button([label, onclick], index) {
  return element("button", { type: "button", class: index === 0 ? "button" : "quiet", onclick }, label);
}

export function welcome(study, strings, next) {
  const note = element("p", { class: "small soft" }, strings.welcomeNote);
  return textPage(study.title, study.welcome, [[strings.begin, next]], note);
}

export function instructionsPage(study, strings, label, next) {
  return textPage(strings.instructions, study.instructions, [[label, next]], howTo(study, strings));
}

/** How to answer this kind of question, and the scales with everything their numbers stand for. */
export function howTo(study, strings) {
  const scales = study.kind === "likert" ? (study.scales ?? []) : [];
  return element(
    "div",
    { class: "how-to" },
    element("h2", {}, strings.howTo),
    element("div", { class: "prose" }, paragraphs(strings.howToKind[study.kind])),
    scales.map((scale) =>
      element(
        "section",
        { class: "scale-help" },
        element("h3", {}, scale.name),
        prose(scale.question),
        meanings(scale),
      ),
    ),
  );
}

/** What the numbers of a scale stand for. */
export function meanings(scale) {
  const pairs = Object.entries(scale.anchors ?? {});
  return element(
    "dl",
    { class: "meanings" },
    pairs.flatMap(([point, text]) => [element("dt", {}, point), prose(text, {}, "dd")]),
  );
}

export function instructionsDialog(study, strings) {
  const dialog = element("dialog", { "aria-labelledby": "instructions-title" });
  dialog.append(
    element("h2", { id: "instructions-title" }, strings.instructions),
    element("div", { class: "prose" }, paragraphs(study.instructions)),
    howTo(study, strings),
    element("div", { class: "choices" }, [
      element("button", { type: "button", class: "button", onclick: () => dialog.close() }, strings.close),
    ]),
  );
  return dialog;
}

/** The code that shows that somebody took part, with a button that copies it where the browser can. */
export function completionCode(code, strings) {
  if (!code) return null;
  const output = element("output", {}, code);
  const copy = element("button", { type: "button", class: "quiet" }, strings.copy);
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code);
      copy.textContent = strings.copied;
    } catch {
      getSelection().selectAllChildren(output); // not allowed: ready to be copied by hand
    }
  });
  return element(
    "div",
    { class: "code panel" },
    element("h2", {}, strings.code),
    element("div", { class: "code-line" }, output, navigator.clipboard ? copy : null),
    element("p", { class: "small soft" }, strings.codeNote),
  );
}

export function closing(strings, code, saved) {
  const note = saved ? strings.doneNote : strings.doneWaiting;
  return textPage(strings.doneTitle, [note], [], completionCode(code, strings));
}
