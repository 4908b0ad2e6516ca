// Before the page is drawn, so that it does not flash: that scripts run, and the theme that was chosen, if one was.
"use strict";
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("recollect-theme"); } catch { /* storage is off: the system decides */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  document.documentElement.classList.add("scripts");
})();
