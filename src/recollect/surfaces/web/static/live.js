// Shows changes made elsewhere without a reload. Hidden pages do not listen.

import { base, fetched, say } from "./page.js";
import { dress, isEdited } from "./editing.js";

const words = {
  "remember fact": "A fact was remembered", "update fact": "A fact was changed", "forget fact": "A fact was forgotten",
  "remember note": "A note was saved", "remember daily": "Something was noted for today",
  "remember episode": "An episode was stored", "remember observation": "An observation was stored",
  "remember message": "A message was stored",
};

const renew = (old, now) => {
  dress(now);
  if (now.innerHTML === old.innerHTML) return;
  const known = new Set([...old.querySelectorAll("[id]")].map((one) => one.id));
  const open = new Set([...old.querySelectorAll("details[open]")].map((one) => one.closest("[id]")?.id));
  const focus = old.contains(document.activeElement) ? document.activeElement.closest("[id]")?.id : null;
  old.replaceChildren(...now.childNodes);
  if (known.size) for (const one of old.querySelectorAll("[id]")) if (!known.has(one.id)) one.classList.add("fresh");
  for (const one of old.querySelectorAll("details")) if (open.has(one.closest("[id]")?.id)) one.open = true;
  if (focus) document.getElementById(focus)?.querySelector("a, button")?.focus({ preventScroll: true });
};

let missed = false;

const refresh = async () => {
  missed = false;
  const { ok, page } = await fetched(location.href.split("#")[0]);
  if (!ok) throw new Error("not there");
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = page.getElementById(old.id);
    if (!now) continue;
    if (isEdited(old)) missed = true; // do not replace what is being edited
    else renew(old, now);
  }
};

export const live = () => {
  let seen = document.body.dataset.seq;
  if (seen === undefined || !("EventSource" in window)) return;
  let events = null;
  let waiting = 0;
  let busy = null;
  let again = false;

  const changed = async (what) => {
    if (busy) { again = true; return; }
    do {
      again = false;
      busy = refresh();
      try {
        await busy;
        say(words[what] || "Memory changed");
      } catch { say("Memory changed; reload to see it"); }
    } while (again);
    busy = null;
  };
  const close = () => { clearTimeout(waiting); events?.close(); events = null; };
  const open = () => {
    close();
    if (document.hidden) return;
    events = new EventSource(`${base}/events?after=${encodeURIComponent(seen)}`);
    events.addEventListener("changed", (event) => {
      const told = JSON.parse(event.data);
      seen = told.seq;
      changed(told.what);
    });
    // a browser reconnects by itself unless it was rejected: too many pages, or a proxy error
    events.addEventListener("error", () => { if (events?.readyState === EventSource.CLOSED) waiting = setTimeout(open, 15000); });
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  document.addEventListener("recollect:edited", () => { if (missed) changed(""); });
  open();
};
