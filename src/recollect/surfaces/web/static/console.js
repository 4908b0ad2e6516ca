// Enhancements for browsers with scripts: local times, live updates, editing in place, search while typing, themes,
// keyboard shortcuts. Every page works without them.

import { editing } from "./editing.js";
import { keys } from "./keys.js";
import { live } from "./live.js";
import { numbers } from "./numbers.js";
import { base, fetched, kept, say } from "./page.js";
import { localise, zone } from "./times.js";

const theme = () => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  if (!button) return;
  const name = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `${button.textContent} theme`);
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    kept("theme", root.dataset.theme);
    name();
  });
  dark.addEventListener("change", name);
  name();
};

const searching = () => {
  const form = document.getElementById("searching");
  if (!form) return;
  let waiting = 0;
  let asking = null;
  const look = async () => {
    const address = `${base}/search?${new URLSearchParams(new FormData(form))}`;
    asking?.abort();
    asking = new AbortController();
    try {
      const { page } = await fetched(address, { signal: asking.signal });
      for (const id of ["results", "number"]) {
        const now = page.getElementById(id);
        if (!now) throw new Error("not there");
        localise(now);
        document.getElementById(id).replaceChildren(...now.childNodes);
      }
      history.replaceState(null, "", address);
    } catch (error) { if (error.name !== "AbortError") say("The search failed"); }
  };
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(look, 150); });
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); look(); });
};

theme();
editing();
searching();
keys();
live();
numbers();
const place = document.getElementById("zone");
if (place) place.textContent = zone === "UTC" ? "Times are UTC." : `Times are in the time zone ${zone.replaceAll("_", " ")}.`;
