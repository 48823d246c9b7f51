// How it replies: the model, the intent, the positivity, one reply or the best of several. A control is there only where
// the model takes it.

import { fetchModels } from "./api.js";
import { $, make } from "./dom.js";
import { currentLanguage, INTENTS, labelMeaning, labelName, languageNames, percent, t } from "./i18n.js";
import { loadSettings, saveSettings } from "./store.js";

let models = [];

export async function loadModels() {
  models = await fetchModels();
  drawOptions();
}

export function hasModels() {
  return models.length > 0;
}

// The chosen model; before any choice, the first that speaks the language of the page. Undefined while none is known.
function chosen() {
  const wanted = loadSettings().model;
  return (
    models.find((model) => model.id === wanted) ??
    models.find((model) => model.languages.includes(currentLanguage())) ??
    models[0]
  );
}

export function modelId() {
  return chosen()?.id ?? null;
}

// What is asked of a reply, as the server takes it.
export function asked() {
  const model = chosen();
  const { intent, positivity, several } = loadSettings();
  const wanted = {};
  if (model?.takesIntent && model.intents.includes(intent)) wanted.intent = intent;
  if (model?.takesPositivity && typeof positivity === "number") wanted.positivity = positivity;
  if (several === true) wanted.mode = "rerank";
  return wanted;
}

function option(value, text, selected) {
  return make("option", { value, selected }, text);
}

function sentence(text) {
  return text && text[0].toUpperCase() + text.slice(1) + (/[.!?。！？]$/.test(text) ? "" : ".");
}

function drawModels(model) {
  $("model").replaceChildren(...models.map((one) => option(one.id, one.id, one === model)));
  $("model").disabled = models.length < 2;
  const languages = languageNames(model?.languages ?? []);
  $("speaks").hidden = !languages || model.languages.includes(currentLanguage());
  $("speaks").textContent = t("speaksOnly", { model: model?.id, languages });
  const speaks = languages && t("modelSpeaks", { languages });
  $("model-about").textContent = [sentence(model?.about), speaks].filter(Boolean).join(" ");
}

function drawIntents(model, intent) {
  $("intent-field").hidden = !model?.takesIntent;
  if (!model?.takesIntent) return;
  const entry = (name) => option(name, labelName(name), name === intent);
  const does = model.intents.filter((name) => INTENTS.includes(name));
  const expresses = model.intents.filter((name) => !INTENTS.includes(name));
  const groups = [[t("intentDoes"), does], [t("intentExpresses"), expresses]].filter(([, names]) => names.length);
  $("intent").replaceChildren(
    option("", t("intentAny"), !intent),
    ...(groups.length === 1
      ? groups[0][1].map(entry)
      : groups.map(([label, names]) => make("optgroup", { label }, ...names.map(entry)))),
  );
  $("intent-about").textContent = intent ? labelMeaning(intent) : "";
}

function drawPositivity(model, positivity) {
  $("positivity-field").hidden = !model?.takesPositivity;
  const isOn = typeof positivity === "number";
  $("positivity-on").checked = isOn;
  $("positivity").disabled = !isOn;
  if (isOn) $("positivity").value = String(positivity);
}

export function drawOptions() {
  const model = chosen();
  const wanted = asked();
  drawModels(model);
  drawIntents(model, wanted.intent ?? "");
  drawPositivity(model, wanted.positivity);
  $("several").checked = wanted.mode === "rerank";
  const parts = [model?.id ?? t("options")];
  if (wanted.intent) parts.push(labelName(wanted.intent));
  if (wanted.positivity !== undefined) parts.push(t("positivityShown", { percent: percent(wanted.positivity) }));
  if (wanted.mode) parts.push(t("severalShown"));
  $("options-summary").textContent = parts.join(" · ");
}

export function connectOptions() {
  const set = (changes) => {
    saveSettings(changes);
    drawOptions();
  };
  $("model").addEventListener("change", (event) => set({ model: event.target.value }));
  $("intent").addEventListener("change", (event) => set({ intent: event.target.value || null }));
  $("positivity-on").addEventListener("change", (event) =>
    set({ positivity: event.target.checked ? Number($("positivity").value) : null }),
  );
  $("positivity").addEventListener("input", (event) => set({ positivity: Number(event.target.value) }));
  $("several").addEventListener("change", (event) => set({ several: event.target.checked }));
  // A click elsewhere folds the options away.
  document.addEventListener("pointerdown", (event) => {
    if ($("options").open && !$("options").contains(event.target)) $("options").open = false;
  });
}
