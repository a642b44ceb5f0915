// The machine under every page: it shows what the server says. Pages read and forms post without it.
const $ = (id) => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const root = document.documentElement;
const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });
const on = (it, name, act, more) => it?.addEventListener(name, act, more);
const clamp = (list, at) => list[Math.min(list.length - 1, Math.max(0, at))];
root.classList.add("has-script");

// -- times
const STEPS = [[31536000, "y"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
function since(seconds) {
  const passed = Math.abs(seconds);
  if (passed < 5) return "just now";
  const [length, unit] = STEPS.find(([step]) => passed >= step);
  const said = `${Math.floor(passed / length)} ${unit}`;
  return seconds > 0 ? `${said} ago` : `in ${said}`;
}
function tick() {
  for (const time of all("time[data-ago]")) {
    const said = since((Date.now() - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== said) time.textContent = said;
  }
}
setInterval(() => document.hidden || tick(), 5000);

// -- live parts
let spoken = 0, saying;
function say(text) { // at most one sentence in five seconds; the last one wins
  clearTimeout(saying);
  saying = setTimeout(() => { spoken = Date.now(); $("says").textContent = text; }, Math.max(0, spoken + 5000 - Date.now()));
}
const TEXT = "input:not([type=checkbox]), textarea, select", STOPS = "a, button, summary, input, [tabindex]";
function isStill(old) { // what somebody reads or writes right now is not pulled away
  const focused = document.activeElement, chosen = getSelection();
  return old.closest("[data-still]") || (old.contains(focused) && focused.matches(TEXT))
    || all("input, textarea", old).some((field) => field.type !== "hidden" && field.value !== field.defaultValue)
    || (!chosen.isCollapsed && chosen.containsNode(old, true));
}
function keep(old, made, selector, name) { // by id, else by place
  const before = all(selector, old);
  all(selector, made).forEach((each, at) => {
    const same = before.find((one) => one.id && one.id === each.id) || before[at];
    if (same) each[name] = same[name];
  });
}
function replace(id, html) {
  const old = $(id), made = make("template", "", { innerHTML: html || "" }).content.firstElementChild;
  if (!old || made?.isEqualNode(old)) return;
  if (isStill(old)) { $("changed").hidden = false; return; }
  if (!made) { old.remove(); return; }
  for (const field of all("input[name=csrf]", made)) field.value = document.body.dataset.csrf;
  keep(old, made, "details", "open");
  keep(old, made, "input[type=checkbox]", "checked");
  if (old.matches("details")) made.open = old.open;
  const at = all(STOPS, old).indexOf(document.activeElement), { scrollTop } = old, isFocused = old === document.activeElement;
  old.replaceWith(made);
  made.scrollTop = scrollTop;
  (isFocused ? made : all(STOPS, made)[at])?.focus({ preventScroll: true });
}
function mark() { // title and favicon say the worst
  const it = $("page-state");
  if (!it) return;
  document.title = `${it.dataset.title} – ${document.body.dataset.site}`;
  const icon = $("favicon");
  icon.href = icon.dataset[it.dataset.state] || icon.dataset.ok;
}
let heard = Date.now();
function asOf({ at, isUp }) {
  heard = Date.now();
  Object.assign($("as-of").firstElementChild, { dateTime: at, textContent: at.slice(11, 19) });
  beat(isUp === false ? "lost" : "live");
}
function beat(state) {
  const pulse = $("pulse");
  if (pulse.dataset.state === state) return;
  pulse.dataset.state = state;
  root.classList.toggle("is-stale", state === "lost");
  if (state === "lost") say("Connection lost. This page may be old.");
}
let source, isOver, release;
function listen() {
  source = new EventSource(document.body.dataset.live);
  on(source, "patch", (event) => {
    const patch = JSON.parse(event.data);
    for (const [id, html] of Object.entries(patch.parts)) replace(id, html);
    asOf(patch);
    tick(); mark(); rove(); follow();
    if (patch.say) say(patch.say);
  });
  on(source, "beat", (event) => asOf(JSON.parse(event.data)));
  on(source, "open", () => { heard = Date.now(); beat("live"); });
  on(source, "bye", () => { isOver = true; source.close(); beat("lost"); say("You are signed out."); });
  on(source, "error", () => {
    if (Date.now() - heard > 5000) beat("lost");
    if (source.readyState === 2 && !isOver) setTimeout(tune, 5000);
  });
}
function tune() { // a browser has six connections for all its pages: in the background one stays live
  release?.();
  if (document.hidden) navigator.locks?.request("argosy", { ifAvailable: true }, (lock) => {
    if (!lock && document.hidden) source?.close();
    if (!lock || !document.hidden) return null;
    if (!source) listen();
    return new Promise((free) => { release = free; });
  });
  else if (!isOver && source?.readyState !== 1) { source?.close(); listen(); }
}
if (document.body.dataset.live) {
  tune();
  on(document, "visibilitychange", tune);
  setInterval(() => !document.hidden && Date.now() - heard > 40000 && beat("lost"), 5000);
}
on($("reload"), "click", () => location.reload());

// -- logs: follow until the reader scrolls up
function follow() { for (const log of all("[data-follow]")) if (!("locked" in log.dataset)) log.scrollTop = log.scrollHeight; }
for (const log of all("[data-stream]")) {
  const source = new EventSource(log.dataset.stream), list = log.querySelector("ol");
  on(source, "lines", (event) => {
    list.insertAdjacentHTML("beforeend", JSON.parse(event.data).html);
    while (list.childElementCount > 5000) list.firstElementChild.remove();
    follow();
  });
  on(source, "end", () => source.close());
}
on(document, "scroll", ({ target }) => {
  if (!target.matches?.("[data-follow]")) return;
  target.toggleAttribute("data-locked", target.scrollTop + target.clientHeight < target.scrollHeight - 24);
}, true);
follow();

// -- trees: one stop for Tab, arrows inside
const leaves = (tree) => all("[role=treeitem]", tree).filter((item) => !item.parentElement.closest("[aria-expanded=false]"));
function fold(item, isOpen) {
  const box = item.querySelector(":scope > details");
  if (box) box.open = isOpen;
  item.ariaExpanded = isOpen;
}
function rove() {
  for (const tree of all("[role=tree]"))
    if (!tree.querySelector("[role=treeitem][tabindex='0']")) tree.querySelector("[role=treeitem]")?.setAttribute("tabindex", "0");
}
function walk(key, item) {
  const shown = leaves(item.closest("[role=tree]")), at = shown.indexOf(item), isOpen = item.ariaExpanded;
  let to = { ArrowDown: shown[at + 1], ArrowUp: shown[at - 1], Home: shown[0], End: shown.at(-1) }[key];
  if (key === "ArrowRight" && isOpen) { if (isOpen === "true") to = shown[at + 1]; else fold(item, true); }
  else if (key === "ArrowLeft") { if (isOpen === "true") fold(item, false); else to = item.parentElement.closest("[role=treeitem]"); }
  else if (key === "Enter") item.querySelector("a")?.click();
  else if (!to) return false;
  if (to) { item.tabIndex = -1; to.tabIndex = 0; to.focus(); }
  return true;
}
on(document, "toggle", ({ target }) => {
  const item = target.matches?.("details") && target.closest("[role=treeitem]");
  if (item) item.ariaExpanded = target.open;
}, true);
rove();

// -- buttons
on(document, "click", async ({ target }) => {
  const copy = target.closest?.("[data-copy]"), opens = target.closest?.("[data-opens]");
  if (target.matches?.("li > .twist")) fold(target.parentElement, target.parentElement.ariaExpanded !== "true");
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy);
    copy.classList.add("is-done");
    say("Copied.");
  } else if (opens) open(opens.dataset.opens);
  else if (target.dataset?.follows) { $(target.dataset.follows).toggleAttribute("data-locked"); follow(); }
  else if (target.matches?.("dialog")) target.close();
  shut(target);
});
function shut(but) { for (const facet of all("details.facet[open]")) if (!facet.contains(but)) facet.open = false; }
function open(id) {
  $("me").hidePopover();
  if (id === "keys") help();
  if (id === "palette") find("");
  if (!$(id).open) $(id).showModal();
}
on(document, "change", ({ target }) => {
  if (target.form?.matches("[data-filter]")) target.form.requestSubmit();
  const group = target.closest("[data-tri]"), head = group?.querySelector("[data-all]");
  if (!head) return;
  const boxes = all("input[type=checkbox]:not([data-all])", group);
  if (target === head) for (const box of boxes) box.checked = head.checked;
  const on = boxes.filter((box) => box.checked).length;
  head.checked = on === boxes.length;
  head.indeterminate = on > 0 && on < boxes.length;
});

// -- the palette: the server finds
const field = $("palette-q"), found = $("palette-list");
let asked = 0;
async function find(text) {
  const mine = ++asked;
  if (!text) field.value = "";
  const answer = await fetch(`/api/argosy/v1/palette?q=${encodeURIComponent(text)}`).catch(() => null);
  const { items = [] } = answer?.ok ? await answer.json() : {};
  if (mine !== asked) return;
  found.replaceChildren(...items.map((item, at) => {
    const line = make("li", "", { id: `palette-${at}`, role: "option", ariaSelected: String(at === 0) });
    line.dataset.url = item.url;
    line.append(...["kind", "text", "about"].map((name) => make("span", item[name] || "", { className: name })));
    return line;
  }));
  choose(0);
}
function choose(step) {
  const lines = [...found.children], at = lines.findIndex((line) => line.ariaSelected === "true");
  const to = clamp(lines, at + step);
  for (const line of lines) line.ariaSelected = String(line === to);
  field.setAttribute("aria-activedescendant", to?.id || "");
  to?.scrollIntoView({ block: "nearest" });
}
function go(line) { if (line?.dataset.url?.startsWith("/")) location.assign(line.dataset.url); }
on(field, "input", () => find(field.value));
on(field, "keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) choose(step);
  else if (event.key === "Enter") go(found.querySelector("[aria-selected=true]"));
  else return;
  event.preventDefault();
});
on(found, "click", ({ target }) => go(target.closest("li")));

// -- keys, by data-key
let first = "";
function help() {
  const rows = [["j / k", "Next, previous row"], ["o", "Open a row"], ["x", "Select a row"], ["Esc", "Close"]];
  for (const it of all("[data-key]")) if (!rows.some(([key]) => key === it.dataset.key)) rows.push([it.dataset.key, it.dataset.about]);
  $("keys-list").replaceChildren(...rows.map(([key, about]) => {
    const row = make("div", ""), cap = make("dd", "");
    cap.append(make("kbd", key));
    row.append(make("dt", about), cap);
    return row;
  }));
}
function move(step, here) {
  const rows = all("[data-row]");
  clamp(rows, rows.indexOf(here) + step)?.querySelector("a")?.focus();
}
on(document, "keydown", (event) => {
  const { key, target } = event, item = target.closest?.("[role=treeitem]");
  if ((event.ctrlKey || event.metaKey) && key === "k" && $("me")) { event.preventDefault(); open("palette"); return; }
  if (item && target === item && walk(key, item)) { event.preventDefault(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (target.matches(TEXT)) { if (key === "Escape") target.blur(); return; }
  if (key === "Escape") shut(null);
  if (root.dataset.keys === "off") return;
  const here = target.closest("[data-row]");
  const wanted = first + key;
  first = key === "g" && !first ? "g " : "";
  if (first) { setTimeout(() => { first = ""; }, 1200); return; }
  const it = all("[data-key]").find((each) => each.dataset.key === wanted);
  if (it) { if (it.matches("input, textarea")) { it.focus(); it.select(); } else it.click(); }
  else if (key === "j" || (key === "ArrowDown" && here)) move(1, here);
  else if (key === "k" || (key === "ArrowUp" && here)) move(-1, here);
  else if (key === "o") { const box = here?.querySelector("details"); if (box) box.open = !box.open; }
  else if (key === "x") here?.querySelector("input[type=checkbox]")?.click();
  else return;
  event.preventDefault();
});
