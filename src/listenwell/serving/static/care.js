// Crisis care: the card in the conversation, and the dialog that is always one click away.

import { fetchResources } from "./api.js";
import { $, linked, make } from "./dom.js";
import { currentLanguage, t } from "./i18n.js";

const CACHE = "listenwell.resources.";

function isResource(item) {
  return typeof item?.name === "string" && typeof item.contact === "string";
}

function resourceItem({ name, contact, note }) {
  return make(
    "li",
    {},
    make("span", { class: "resource-name" }, name),
    make("span", { class: "resource-contact" }, ...linked(contact)),
    typeof note === "string" && note && make("span", { class: "small soft" }, note),
  );
}

function resourceList(resources) {
  return make("ul", { class: "resources" }, ...resources.map(resourceItem));
}

// A reply of care. Lines of its text that name a resource are shown as that resource, in their place, and with them what
// the text does not name.
function careContent(text, care) {
  const given = Array.isArray(care.resources) ? care.resources.filter(isResource) : [];
  const others = care.kind === "card" ? given.filter((one) => !text.includes(one.contact)) : [];
  const parts = [];
  for (const paragraph of text.split(/\n{2,}/)) {
    const lines = paragraph.split("\n").filter((line) => line.trim());
    const prose = lines.filter((line) => !line.startsWith("- "));
    if (prose.length) parts.push(make("p", {}, ...linked(prose.join("\n"))));
    const named = lines.filter((line) => line.startsWith("- ")).map((line) => listed(line.slice(2), given));
    if (named.length) parts.push(resourceList([...named, ...others.splice(0)]));
  }
  if (others.length) parts.push(resourceList(others));
  return parts;
}

function listed(line, given) {
  const known = given.find((one) => line.includes(one.name) && line.includes(one.contact));
  if (known) return known;
  const [, name, contact] = /^(.*?)[:：]\s*(.+)$/.exec(line) ?? [null, "", line];
  return { name, contact };
}

export function careCard(text, care, onMore) {
  return make(
    "div",
    { class: "care", role: "group", "aria-label": t("careLabel") },
    ...careContent(text, care),
    care.kind === "question" && make("button", { class: "quiet", type: "button", onclick: onMore }, t("careMore")),
  );
}

function remembered(language) {
  try {
    return readResources(JSON.parse(localStorage.getItem(CACHE + language)));
  } catch {
    return null;
  }
}

// [{ name, contact, note }], the emergency number first; null where the answer holds none.
function readResources(body) {
  const list = body?.resources;
  if (!Array.isArray(list)) return null;
  const emergency = typeof body.emergency === "string" && body.emergency;
  const first = emergency ? [{ name: t("helpEmergency"), contact: emergency }] : [];
  const all = [...first, ...list.filter(isResource)];
  return all.length ? all : null;
}

// Fetched ahead and remembered, so that the dialog has them without a connection, too.
export async function rememberResources() {
  const language = currentLanguage();
  try {
    const body = await fetchResources(language);
    if (readResources(body)) localStorage.setItem(CACHE + language, JSON.stringify(body));
  } catch {
    // The words of the page itself serve until they can be had.
  }
}

function showResources() {
  $("resources").replaceChildren(resourceList(remembered(currentLanguage()) ?? t("helpDefault")));
}

export async function openHelp() {
  const language = currentLanguage();
  const known = remembered(language);
  showResources();
  $("help-dialog").showModal();
  if (known) return;
  await rememberResources();
  if (language === currentLanguage()) showResources();
}
