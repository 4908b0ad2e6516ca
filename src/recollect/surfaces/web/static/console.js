// What a page gains where scripts run: live changes, search while typing, a theme switch, keys. All works without it.
"use strict";
(() => {
  const body = document.body;
  const base = body.dataset.base || "";
  const say = (text) => {
    const place = document.getElementById("live");
    if (!place) return;
    place.textContent = text;
    place.classList.add("shown");
    clearTimeout(say.timer);
    say.timer = setTimeout(() => place.classList.remove("shown"), 4000);
  };

  // the theme

  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  if (button) {
    const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("recollect-theme", root.dataset.theme); } catch { /* for this page only */ }
      name();
    });
    dark.addEventListener("change", name);
    name();
  }

  // parts of the page, fetched again

  const fetched = async (address, signal) => {
    const answer = await fetch(address, { credentials: "same-origin", signal });
    if (!answer.ok || answer.redirected) throw new Error("not there");
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };

  const refresh = async () => {
    const fresh = await fetched(location.href);
    for (const old of document.querySelectorAll("[data-live]")) {
      const now = fresh.getElementById(old.id);
      if (!now || now.innerHTML === old.innerHTML) continue;
      const known = new Set([...old.querySelectorAll("[id]")].map((one) => one.id));
      const open = [...old.querySelectorAll("details")].map((one) => one.open);
      const focus = old.contains(document.activeElement) ? document.activeElement.closest("[id]")?.id : null;
      old.replaceChildren(...now.childNodes);
      if (known.size) for (const one of old.querySelectorAll("[id]")) if (!known.has(one.id)) one.classList.add("fresh");
      [...old.querySelectorAll("details")].forEach((one, at) => { if (open[at]) one.open = true; });
      if (focus) document.getElementById(focus)?.querySelector("a, button")?.focus();
    }
  };

  // live changes

  const words = {
    "remember fact": "A fact was remembered", "update fact": "A fact was changed", "forget fact": "A fact was forgotten",
    "remember note": "A note was saved", "remember daily": "Something was noted for today",
    "remember episode": "An episode was kept", "remember observation": "An observation was kept",
  };
  if (body.dataset.seq !== undefined && "EventSource" in window) {
    const events = new EventSource(`${base}/events?after=${encodeURIComponent(body.dataset.seq)}`);
    events.addEventListener("changed", async (event) => {
      const { what } = JSON.parse(event.data);
      try {
        await refresh();
        say(words[what] || "Memory changed");
      } catch { say("Memory changed; reload to see it"); }
    });
    addEventListener("pagehide", () => events.close());
  }

  // search while typing

  const form = document.getElementById("searching");
  if (form) {
    const results = document.getElementById("results");
    let waiting = 0;
    let asking = null;
    const look = async () => {
      const address = `${base}/search?${new URLSearchParams(new FormData(form))}`;
      asking?.abort();
      asking = new AbortController();
      try {
        const fresh = await fetched(address, asking.signal);
        results.replaceChildren(...fresh.getElementById("results").childNodes);
        history.replaceState(null, "", address);
      } catch (error) { if (error.name !== "AbortError") say("The search did not answer"); }
    };
    form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(look, 150); });
    form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); look(); });
  }

  // what was typed and not saved

  let typed = false;
  for (const field of document.querySelectorAll("[data-warn]")) {
    field.addEventListener("input", () => { typed = true; });
    field.form.addEventListener("submit", () => { typed = false; });
  }
  addEventListener("beforeunload", (event) => { if (typed) event.preventDefault(); });

  // keys

  const places = { m: "/", t: "/timeline", d: "/daily", s: "/settings" };
  addEventListener("keydown", (event) => {
    const on = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || on.closest?.("input, textarea, select") || on.isContentEditable) return;
    if (event.key === "/") {
      event.preventDefault();
      (document.getElementById("q") || document.getElementById("find"))?.focus();
    } else if (body.dataset.seq !== undefined && places[event.key]) location.href = base + places[event.key];
  });
})();
