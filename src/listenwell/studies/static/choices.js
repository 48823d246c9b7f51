// Radio groups that look like buttons. They stay native radios: arrow keys, forms and screen readers know them.

import { element } from "./dom.js";

/**
 * A radio with its label.
 * @param {{name: string, value: any, label: Node|string, note?: string, style?: string, chosen?: boolean}} option
 * `note` is for screen readers only; `value` is what `onChoose` gets, of whatever type.
 */
export function radio({ name, value, label, note, style, chosen }, onChoose) {
  const input = element("input", { type: "radio", name, value, checked: chosen, onchange: () => onChoose(value) });
  const heard = note ? element("span", { class: "visually-hidden" }, ` – ${note}`) : null;
  return element("label", { class: `choice ${style ?? ""}` }, input, element("span", { class: "face" }, label, heard));
}

/** Lets the digits on the keyboard choose inside `group`; `digits` maps "1" to a radio's value. */
export function chooseByDigit(group, digits) {
  group.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !(event.key in digits)) return;
    const wanted = String(digits[event.key]);
    const input = [...group.querySelectorAll("input[type=radio]")].find((one) => one.value === wanted);
    if (!input) return;
    event.preventDefault();
    input.focus();
    if (!input.checked) input.click();
  });
}

/** A group of radios with a legend; `missing` marks it until something is chosen. */
export function choiceGroup({ legend, question, style, extra }, options) {
  return element(
    "fieldset",
    { class: `question ${style ?? ""}` },
    element("legend", {}, legend, question ? element("span", { class: "sentence" }, question) : null),
    options,
    extra ?? null,
  );
}

/** Marks the groups that still need an answer, and goes to the first of them. */
export function pointOut(groups, mark) {
  for (const group of groups) {
    if (!group.querySelector(".missing-mark")) {
      group.append(element("p", { class: "missing-mark" }, mark));
    }
    group.classList.add("missing");
  }
  const first = groups[0];
  first?.scrollIntoView({ block: "center" });
  first?.querySelector("input, select")?.focus({ preventScroll: true });
}

export function clearMark(group) {
  group.classList.remove("missing");
  group.querySelector(".missing-mark")?.remove();
}
