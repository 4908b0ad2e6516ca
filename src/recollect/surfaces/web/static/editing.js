// Editing in place, with a preview while typing. The server does the work: the page of a record is fetched, and its
// form is used here.

import { fetched, say } from "./page.js";
import { localise } from "./times.js";

const LONGEST = 300000;
let typed = false;

/** Returns true if something in this place is being edited. */
export const isEdited = (place) => place.querySelector(".editing") !== null;

/** Prepares new content: converts times, and adds an edit button to each editable line. */
export const dress = (root) => {
  localise(root);
  for (const line of root.querySelectorAll("[data-edit]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain edit";
    button.textContent = "Edit";
    button.setAttribute("aria-label", `Edit ${line.querySelector("a").textContent.trim().replace(/\s+/g, " ").slice(0, 80)}`);
    line.append(button);
  }
};

/** Previews while typing: sends the form as if "Compare" was pressed, and inserts the result. */
const preview = (form) => {
  const field = form.querySelector("textarea");
  let waiting = 0;
  let asking = null;
  let shown = field.defaultValue;
  const look = async () => {
    clearTimeout(waiting);
    asking?.abort();
    const mine = asking = new AbortController();
    const text = field.value;
    const data = new FormData(form);
    data.set("step", "preview");
    try {
      const { page } = await fetched(form.action, { method: "POST", body: new URLSearchParams(data), signal: mine.signal });
      const now = page.querySelector("[data-changes]");
      if (!now) throw new Error(page.querySelector("[role=alert]")?.textContent || "The preview failed");
      const old = form.querySelector("[data-changes]");
      const had = old.contains(document.activeElement);
      old.replaceChildren(...now.childNodes);
      if (had) old.querySelector("button[value=save]")?.focus();
      shown = text;
      form.closest(".editing")?.scrollIntoView({ block: "nearest" });
    } catch (error) { if (error.name !== "AbortError") say(error.message === "not there" ? "The preview failed" : error.message); }
  };
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    if (field.value.length <= LONGEST) waiting = setTimeout(look, 250);
  });
  if (field.value !== shown && field.value.length <= LONGEST) look(); // typed before this script was loaded
  form.addEventListener("submit", async (event) => {
    if (event.submitter?.value !== "save" || shown === field.value) { typed = false; return; }
    event.preventDefault(); // the text has not been compared yet
    await look();
    if (shown === field.value) save(form);
  });
  return look;
};

const save = (form) => {
  const button = form.querySelector("button[value=save]");
  if (button) { form.requestSubmit(button); return true; }
  return false;
};

const watch = (root) => {
  for (const field of root.querySelectorAll("[data-warn]")) {
    field.addEventListener("input", () => { typed = true; });
    field.form.addEventListener("submit", (event) => { if (!event.defaultPrevented) typed = false; });
  }
  for (const form of root.querySelectorAll("form[data-preview]")) {
    const look = preview(form);
    form.addEventListener("keydown", async (event) => {
      const isEnter = event.key === "Enter" && event.target.matches("textarea") && !event.isComposing;
      if (!isEnter || event.shiftKey || !(event.ctrlKey || event.metaKey || form.closest(".editing"))) return;
      event.preventDefault();
      await look();
      if (!save(form)) form.querySelector("[data-cancel]")?.click();
    });
  }
};

const open = async (line) => {
  if (line.matches(".editing, .opening")) return;
  line.classList.add("opening"); // ignore keyboard shortcuts meanwhile
  const link = line.querySelector("a");
  let form = null;
  let page = null;
  try {
    ({ page } = await fetched(link.href));
    form = page.querySelector("form[data-preview]");
  } catch { /* the record's own page shows the error */ }
  line.classList.remove("opening");
  if (!form) { location.href = link.href; return; }
  const box = document.createElement("div");
  box.className = "editor";
  const acts = page.querySelector("[data-acts]");
  box.append(form, ...(acts ? [acts] : []));
  const back = location.pathname.slice((document.body.dataset.base || "").length).replace(/^\/+|\/+$/g, "");
  for (const one of box.querySelectorAll("form")) {
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name: "back", value: back });
    one.append(field);
  }
  const field = form.querySelector("textarea");
  const close = () => {
    typed = false;
    box.remove();
    line.classList.remove("editing");
    link.focus();
    document.dispatchEvent(new Event("recollect:edited"));
  };
  box.addEventListener("keydown", (event) => { if (event.key === "Escape" && !event.isComposing) { event.stopPropagation(); close(); } });
  box.addEventListener("click", (event) => { if (event.target.closest("[data-cancel]")) { event.preventDefault(); close(); } });
  const leave = document.createElement("button");
  Object.assign(leave, { type: "button", className: "quiet", textContent: "Cancel" });
  leave.dataset.cancel = "";
  form.querySelector("[data-changes] .actions").append(leave);
  const hint = form.querySelector(".hint");
  if (hint) hint.textContent += " Enter saves, Escape cancels.";
  line.classList.add("editing");
  line.append(box);
  watch(box);
  field.rows = Math.min(8, Math.max(2, Math.ceil(field.value.length / 70)));
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
};

export const editing = () => {
  watch(document);
  dress(document.body);
  addEventListener("beforeunload", (event) => { if (typed) event.preventDefault(); });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.edit");
    if (button) open(button.closest("[data-edit]"));
  });
};

export const editLine = (line) => open(line);
