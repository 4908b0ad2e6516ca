// Refreshes metrics every few seconds while the page is visible.

import { fetched } from "./page.js";
import { localise } from "./times.js";

const stops = "a, button, summary, [tabindex]";

const renew = (old, now) => {
  localise(now);
  const chosen = getSelection();
  if (now.innerHTML === old.innerHTML || (chosen && !chosen.isCollapsed && old.contains(chosen.anchorNode))) return;
  const open = [...old.querySelectorAll("details")].map((one) => one.open);
  const focus = [...old.querySelectorAll(stops)].indexOf(document.activeElement);
  const aside = [...old.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
  old.replaceChildren(...now.childNodes);
  [...old.querySelectorAll("details")].forEach((one, at) => { one.open = open[at] ?? false; });
  [...old.querySelectorAll(".scroll")].forEach((one, at) => { one.scrollLeft = aside[at] ?? 0; });
  old.querySelectorAll(stops)[focus]?.focus({ preventScroll: true });
};

export const numbers = () => {
  const places = document.querySelectorAll("[data-numbers]");
  if (!places.length) return;
  let waiting = 0;
  let busy = false;
  const pause = (took) => {
    clearTimeout(waiting);
    const seconds = document.querySelector("[data-again]") ? 1 : 10;
    // poll less often if the server is slow
    waiting = setTimeout(look, Math.max(seconds * 1000, 20 * took));
  };
  const look = async () => {
    if (busy || document.hidden) return;
    busy = true;
    const began = performance.now();
    try {
      const { ok, page } = await fetched(location.href.split("#")[0]);
      for (const old of places) {
        const now = ok && page.getElementById(old.id);
        if (now) renew(old, now);
      }
    } catch { /* try again next time */ }
    busy = false;
    pause(performance.now() - began);
  };
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", () => clearTimeout(waiting));
  addEventListener("pageshow", (event) => { if (event.persisted) look(); });
  pause(0);
};
