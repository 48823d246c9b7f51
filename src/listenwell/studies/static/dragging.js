// Dragging with pointer events: mouse, pen and touch alike.
//
// A mouse may take a card anywhere. A finger takes it at its handle, so that the page still scrolls everywhere else.
// Where not all zones are in view, a dock with the same three targets appears at the bottom while dragging.

import { element } from "./dom.js";

const THRESHOLD = 5; // pixels before a press becomes a drag
const LEAST_ROOM = 60; // pixels of a zone that must be visible

/** Makes `card` draggable onto anything with data-place; `drop` gets the place, "" for the tray. */
export function draggable(card, { board, drop, label }) {
  card.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary || event.target.closest("label")) return;
    if (event.pointerType === "touch" && !event.target.closest(".handle")) return;
    follow(card, event, { board: board(), drop, label });
  });
}

function follow(card, pressed, { board, drop, label }) {
  const from = { x: pressed.pageX, y: pressed.pageY };
  const home = card.closest("[data-place]");
  const drag = { dock: null, over: null };

  const start = () => {
    card.setPointerCapture(pressed.pointerId);
    card.classList.add("dragging");
    document.body.classList.add("is-dragging");
    drag.dock = makeDock(board, label);
    if (!drag.dock.hidden) shrink();
  };
  /** Above the dock a card is drawn smaller, around the finger, so that it does not hide the targets. */
  const shrink = () => {
    const box = card.getBoundingClientRect();
    card.style.transformOrigin = `${pressed.clientX - box.left}px ${pressed.clientY - box.top}px`;
    card.classList.add("small");
  };
  const onMove = (event) => {
    if (event.pointerId !== pressed.pointerId) return;
    const by = { x: event.pageX - from.x, y: event.pageY - from.y };
    if (drag.dock === null && Math.hypot(by.x, by.y) < THRESHOLD) return;
    if (drag.dock === null) start();
    const size = drag.dock.hidden ? "rotate(1.2deg)" : "scale(0.55)";
    card.style.transform = `translate(${by.x}px, ${by.y}px) ${size}`;
    hover(placeAt(event.clientX, event.clientY));
  };
  const hover = (target) => {
    if (target === drag.over) return;
    drag.over?.classList.remove("over");
    drag.over = target;
    if (target && target !== home) target.classList.add("over");
  };
  const end = (accepted) => {
    const target = drag.over;
    const dragged = drag.dock !== null;
    stop.abort();
    hover(null);
    drag.dock?.remove();
    card.classList.remove("dragging", "small");
    card.style.transform = card.style.transformOrigin = "";
    document.body.classList.remove("is-dragging");
    if (dragged && accepted && target && target.dataset.place !== home.dataset.place) drop(target.dataset.place);
  };

  const stop = new AbortController();
  const listen = (node, name, listener) => node.addEventListener(name, listener, { signal: stop.signal });
  listen(window, "pointermove", onMove);
  listen(window, "pointerup", (event) => event.pointerId === pressed.pointerId && end(true));
  listen(window, "pointercancel", (event) => event.pointerId === pressed.pointerId && end(false));
  listen(window, "blur", () => end(false));
  listen(window, "keydown", (event) => event.key === "Escape" && end(false));
}

/** Whether enough of a zone is between the bars to drop something there. */
function inView(zone) {
  const { top, bottom } = zone.getBoundingClientRect();
  const ceiling = document.querySelector(".bar-top").getBoundingClientRect().bottom;
  const floor = document.querySelector(".bar-bottom").getBoundingClientRect().top;
  return Math.min(bottom, floor) - Math.max(top, ceiling) >= LEAST_ROOM;
}

function placeAt(x, y) {
  return document.elementFromPoint(x, y)?.closest("[data-place]") ?? null;
}

/** Targets at the bottom of the window, hidden where all zones are in view anyway. */
function makeDock(board, label) {
  const zones = [...board.querySelectorAll("[data-place]")];
  const dock = element("div", { class: "dock", "aria-hidden": "true", hidden: zones.every(inView) });
  for (const { dataset } of zones) {
    const { place } = dataset;
    dock.append(element("div", { class: `zone is-${place}`, "data-place": place }, label(place)));
  }
  document.body.append(dock);
  return dock;
}
