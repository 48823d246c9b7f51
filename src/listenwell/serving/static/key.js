// The key that a server may ask for. It is kept for the tab, and sent with every request.

import { setKey } from "./api.js";
import { $ } from "./dom.js";

let asking = null;
let wasGiven = false; // a key that the server has not accepted so far

// Asks for the key; false if the person would rather not give one. Whoever asks meanwhile shares the answer.
export function askForKey() {
  asking ??= new Promise((resolve) => {
    const dialog = $("key-dialog");
    $("key-problem").hidden = !wasGiven;
    $("key").value = "";
    dialog.returnValue = "";
    dialog.addEventListener(
      "close",
      () => {
        asking = null;
        resolve(dialog.returnValue === "given");
      },
      { once: true },
    );
    dialog.showModal();
  });
  return asking;
}

export function keyWasAccepted() {
  wasGiven = false;
}

export function connectKey() {
  $("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const key = $("key").value.trim();
    if (!key) return;
    setKey(key);
    wasGiven = true;
    $("key-dialog").close("given");
  });
}
