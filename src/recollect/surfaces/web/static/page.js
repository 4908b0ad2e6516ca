// Shared helpers: the base path, fetching a page, showing a short message.

export const base = document.body.dataset.base || "";

export const say = (text) => {
  const place = document.getElementById("live");
  if (!place) return;
  place.textContent = text;
  place.classList.add("shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => place.classList.remove("shown"), 4000);
};

/** Fetches and parses one of our pages. A redirect, such as to the login page, is an error. */
export const fetched = async (address, how = {}) => {
  const answer = await fetch(address, { credentials: "same-origin", ...how });
  if (answer.redirected || !(answer.headers.get("content-type") || "").startsWith("text/html")) throw new Error("not there");
  const read = new DOMParser().parseFromString(await answer.text(), "text/html");
  return { ok: answer.ok, page: read };
};

export const kept = (name, value) => {
  try {
    if (value === undefined) return localStorage.getItem(`recollect-${name}`);
    localStorage.setItem(`recollect-${name}`, value);
  } catch { /* storage is disabled: the value holds for this page only */ }
  return null;
};
