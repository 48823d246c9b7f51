// Loaded before the page is drawn, so that a theme chosen earlier does not flash. "auto" follows the system.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("listenwell.theme");
  } catch {
    // A browser that stores nothing follows the system.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
