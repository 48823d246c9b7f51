// The colours: as the system has them, light, or dark. theme.js applies the choice before the page is drawn.

import { $ } from "./dom.js";
import { t } from "./i18n.js";
import { loadTheme, saveTheme } from "./store.js";

const NEXT = { auto: "light", light: "dark", dark: "auto" };
const NAMES = { auto: "themeAuto", light: "themeLight", dark: "themeDark" };

export function drawTheme() {
  const theme = loadTheme();
  const words = t(NAMES[theme]);
  $("theme").dataset.theme = theme;
  $("theme").setAttribute("aria-label", words);
  $("theme").title = words;
}

export function switchTheme() {
  const theme = NEXT[loadTheme()];
  saveTheme(theme);
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  drawTheme();
}
