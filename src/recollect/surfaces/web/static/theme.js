// Runs before the page is rendered, to avoid a flash: marks that scripts run, and applies the chosen theme.
"use strict";
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("recollect-theme"); } catch { /* storage is disabled: use the system theme */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  document.documentElement.classList.add("scripts");
})();
