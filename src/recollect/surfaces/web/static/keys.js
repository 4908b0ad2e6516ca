// Keyboard shortcuts. They can be turned off in the list that "?" shows.

import { base, kept } from "./page.js";
import { editLine } from "./editing.js";

const places = { m: "/", d: "/daily", p: "/people", c: "/conversations", t: "/timeline", s: "/settings" };
const LINES = "main .facts a, main .card h2 a, main .event .what a:first-of-type, main .hits .said a, main .plainlist a, main .talk .above a";

const step = (by) => {
  const lines = [...document.querySelectorAll(LINES)].filter((one) => one.checkVisibility?.() ?? true);
  const here = lines.findIndex((one) => one === document.activeElement || one.closest("li, article")?.contains(document.activeElement));
  lines[here < 0 ? (by > 0 ? 0 : lines.length - 1) : Math.min(Math.max(here + by, 0), lines.length - 1)]?.focus();
};

export const keys = () => {
  const dialog = document.getElementById("keys");
  const help = document.getElementById("help");
  const switched = document.getElementById("keys-on");
  if (!dialog) return;
  switched.checked = kept("keys") !== "off";
  switched.addEventListener("change", () => kept("keys", switched.checked ? "on" : "off"));
  help.hidden = false;
  help.addEventListener("click", () => dialog.showModal());
  addEventListener("keydown", (event) => {
    const on = event.target;
    if (!switched.checked || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || dialog.open) return;
    if (on.closest?.("input, textarea, select") || on.isContentEditable || document.querySelector(".opening")) return;
    const line = on.closest?.("[data-edit]");
    if (event.key === "/") (document.getElementById("q") || document.getElementById("find"))?.focus();
    else if (event.key === "?") dialog.showModal();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "e" && line) editLine(line);
    else if (document.body.dataset.seq !== undefined && places[event.key]) location.href = base + places[event.key];
    else return;
    event.preventDefault();
  });
};
