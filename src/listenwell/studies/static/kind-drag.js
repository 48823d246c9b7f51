// Replies as cards that are dragged into good, okay or bad.
//
// Every card also has three radios. They are what the keyboard moves (arrow keys, or 1, 2, 3), what a screen reader
// hears, and what a finger can tap instead of dragging. Dragging sets the same radios.

import { clearMark, radio } from "./choices.js";
import { replyName } from "./conversation.js";
import { announce, element, move, prose } from "./dom.js";
import { draggable } from "./dragging.js";

const PLACES = ["good", "okay", "bad"];

export function drag({ item, study, strings, values, changed }) {
  const places = study.choices?.length ? study.choices : PLACES;
  const titles = Object.fromEntries(places.map((place) => [place, strings.place[place] ?? place]));
  const tray = area("", strings.unsorted, strings.allSorted, "tray");
  const zone = (place) => area(place, titles[place], strings.emptyPlace, "zone");
  const zones = Object.fromEntries(places.map((place) => [place, zone(place)]));
  const cards = new Map();

  const left = () => item.replies.filter((reply) => values[reply.key] === undefined).length;
  const put = (key, place, spoken = true) => {
    const card = cards.get(key);
    if (place) values[key] = place;
    else delete values[key];
    for (const input of card.querySelectorAll("input")) input.checked = input.value === place;
    move(card, (zones[place] ?? tray).list);
    clearMark(card);
    for (const one of [tray, ...Object.values(zones)]) one.count();
    if (!spoken) return;
    const name = replyName(item, key, strings);
    announce(place ? strings.moved(name, titles[place], left()) : strings.unplaced(name));
    changed();
  };

  for (const reply of item.replies) {
    const card = makeCard({ item, reply, strings, places, titles }, (place) => put(reply.key, place));
    cards.set(reply.key, card);
    draggable(card, { board: () => board, drop: (place) => put(reply.key, place), label: (place) => titles[place] });
    put(reply.key, values[reply.key] ?? "", false);
  }
  const board = element("div", { class: "zones" }, Object.values(zones).map(({ node }) => node));
  return {
    node: element(
      "div",
      { class: "replies drag" },
      element("p", { class: "drag-question" }, study.scales?.[0]?.question ?? strings.dragQuestion),
      tray.node,
      board,
    ),
    total: item.replies.length,
    groups: cards,
    missing: () => [...cards].filter(([key]) => values[key] === undefined).map(([, card]) => card),
  };
}

/** A place for cards with its title, and a hint that shows while it has none. */
function area(place, title, hint, style) {
  const number = element("span", { class: "count", "aria-hidden": "true" });
  const list = element("ul", { class: "cards" });
  const empty = element("p", { class: "hint" }, hint);
  const heading = element("h2", {}, title, " ", number);
  const classes = place ? `${style} is-${place}` : style;
  const node = element("section", { class: classes, "data-place": place }, heading, empty, list);
  const count = () => {
    const cards = list.childElementCount;
    number.textContent = cards ? String(cards) : "";
    empty.hidden = cards > 0;
  };
  return { node, list, count };
}

function makeCard({ item, reply, strings, places, titles }, choose) {
  const name = replyName(item, reply.key, strings);
  const option = (place) =>
    radio({ name: `${item.id}/${reply.key}`, value: place, label: titles[place], style: `to-${place}` }, choose);
  const options = element("div", { class: "places" }, places.map(option));
  const group = element(
    "fieldset",
    { class: "question" },
    element("legend", { class: "visually-hidden" }, `${name}: ${reply.text}`),
    options,
  );
  const card = element(
    "li",
    { class: "card" },
    element("span", { class: "handle", "aria-hidden": "true", title: strings.dragHandle }),
    element("span", { class: "reply-name" }, name),
    prose(reply.text, { class: "reply-text" }),
    group,
  );
  group.addEventListener("keydown", (event) => onKey(event, places, card));
  return card;
}

/** Arrow keys step through the places, from none to the first; digits go straight there. */
function onKey(event, places, card) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const inputs = places.map((place) => card.querySelector(`input[value="${CSS.escape(place)}"]`));
  const current = inputs.findIndex((input) => input.checked);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const last = inputs.length - 1;
  let target = Number(event.key) - 1;
  if (step) target = current < 0 ? (step > 0 ? 0 : last) : Math.min(Math.max(current + step, 0), last);
  if (!(target in inputs)) return;
  event.preventDefault();
  inputs[target].focus({ preventScroll: true });
  if (target !== current) inputs[target].click();
  card.scrollIntoView({ block: "nearest" });
}
