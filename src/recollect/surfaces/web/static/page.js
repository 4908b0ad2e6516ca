// What all parts share: where the console is, fetching a page again, saying something in passing.

export const base = document.body.dataset.base || "";

export const say = (text) => {
  const place = document.getElementById("live");
  if (!place) return;
  place.textContent = text;
  place.classList.add("shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => place.classList.remove("shown"), 4000);
};

/** A page of ours, not shown but read. One that was sent elsewhere, such as to the door, is not it. */
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
  } catch { /* storage is off: for this page only */ }
  return null;
};
