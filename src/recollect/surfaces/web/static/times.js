// Converts times to the viewer's time zone.

const form = (options) => new Intl.DateTimeFormat("en-GB", { hourCycle: "h23", ...options });
const forms = {
  moment: form({ day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" }),
  clock: form({ hour: "2-digit", minute: "2-digit" }),
};
const days = form({ weekday: "long", day: "numeric", month: "long", year: "numeric" });
const dayOf = (when) => days.format(when).replace(/^(\w+),? /, "$1, ");

export const zone = form({}).resolvedOptions().timeZone;

/** Converts all times within an element, and the day headings above them. */
export const localise = (root) => {
  for (const one of root.querySelectorAll("time[data-form]")) {
    const when = new Date(one.dateTime);
    if (forms[one.dataset.form] && !Number.isNaN(when.getTime())) one.textContent = forms[one.dataset.form].format(when);
  }
  for (const list of root.matches(".dated") ? [root] : root.querySelectorAll(".dated")) {
    const head = list.querySelector(".date");
    for (const old of list.querySelectorAll(":scope > .date")) old.remove();
    let before = "";
    for (const event of list.querySelectorAll(":scope > .event")) {
      const day = dayOf(new Date(event.querySelector("time").dateTime));
      if (day === before) continue;
      before = day;
      const heading = head.cloneNode(true);
      heading.firstElementChild.textContent = day;
      event.before(heading);
    }
  }
};
