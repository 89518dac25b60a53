// Runs before the first paint, so that a theme chosen earlier does not flash. "auto" follows the system.
"use strict";
(() => {
  try {
    const chosen = localStorage.getItem("kizuki-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Where storage is forbidden the system decides.
  }
})();
