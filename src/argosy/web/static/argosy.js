// Live updates and shortcuts. Pages and forms work without it.
const doc = document, $ = (id) => doc.getElementById(id);
const all = (selector, within = doc) => [...within.querySelectorAll(selector)];
const root = doc.documentElement, now = Date.now, { csrf, live, site } = doc.body.dataset;
const make = (tag, text, more = {}) => Object.assign(doc.createElement(tag), { textContent: text, ...more });
const on = (it, name, act, more) => it?.addEventListener(name, act, more);
const told = (source, name, act) => on(source, name, ({ data }) => act(JSON.parse(data)));
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
    const said = since((now() - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== said) time.textContent = said;
  }
}
setInterval(() => doc.hidden || tick(), 5000);

// -- live parts
let spoken = 0, saying;
function say(text) { // at most one message in five seconds; the last wins
  clearTimeout(saying);
  saying = setTimeout(() => { spoken = now(); $("says").textContent = text; }, Math.max(0, spoken + 5000 - now()));
}
const TEXT = "input:not([type=checkbox]), textarea, select", STOPS = "a, button, summary, input, [tabindex]";
function isStill(old) { // do not replace elements in use
  const focused = doc.activeElement, chosen = getSelection();
  return old.closest("[data-still]") || (old.contains(focused) && focused.matches(TEXT))
    || all("input, textarea", old).some((field) => field.type !== "hidden" && field.value !== field.defaultValue)
    || (!chosen.isCollapsed && chosen.containsNode(old, true));
}
function keep(old, made, selector, name) { // by id, else by position
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
  for (const field of all("input[name=csrf]", made)) field.value = csrf;
  keep(old, made, "details", "open");
  keep(old, made, "input[type=checkbox]", "checked");
  if (old.matches("details")) made.open = old.open;
  const at = all(STOPS, old).indexOf(doc.activeElement), { scrollTop } = old, isFocused = old === doc.activeElement;
  old.replaceWith(made);
  made.scrollTop = scrollTop;
  (isFocused ? made : all(STOPS, made)[at])?.focus({ preventScroll: true });
}
function mark() { // title and favicon show the worst state
  const it = $("page-state");
  if (!it) return;
  doc.title = `${it.dataset.title} – ${site}`;
  const icon = $("favicon");
  icon.href = icon.dataset[it.dataset.state] || icon.dataset.ok;
}
let heard = now();
function asOf({ at, isUp }) {
  heard = now();
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
function over(why) { // show a notice of the layout
  isOver = true;
  source.close();
  beat("lost");
  $(why).hidden = false;
  say($(why).textContent);
}
function listen() {
  source?.close();
  source = new EventSource(live);
  told(source, "patch", (patch) => {
    for (const [id, html] of Object.entries(patch.parts)) replace(id, html);
    asOf(patch);
    tick(); mark(); rove(); follow();
    if (patch.say) say(patch.say);
  });
  told(source, "beat", asOf);
  on(source, "open", () => { heard = now(); beat("live"); });
  told(source, "bye", ({ why }) => over(why));
  on(source, "error", async () => {
    if (now() - heard > 5000) beat("lost");
    if (source.readyState < 2) return;
    const page = await fetch(location, { method: "HEAD" }).catch(() => null); // its status says why
    if (page?.redirected) over("signed-out");
    else if (page?.status === 404) over("gone");
    else setTimeout(tune, 5000);
  });
}
function tune() { // six connections per browser: one background page stays live
  release?.();
  if (doc.hidden) navigator.locks?.request("argosy", { ifAvailable: true }, (lock) => {
    if (!lock || !doc.hidden) return doc.hidden && source?.close();
    if (!source) listen();
    return new Promise((free) => { release = free; });
  });
  else if (!isOver && source?.readyState !== 1) listen();
}
if (live) {
  tune();
  on(doc, "visibilitychange", tune);
  setInterval(() => { // connection lost without an error
    if (source?.readyState < 2 && now() - heard > 40000) { beat("lost"); heard = now(); listen(); }
  }, 5000);
}
on($("reload"), "click", () => location.reload());

// -- logs: follow until the reader scrolls up
function follow() { for (const log of all("[data-follow]")) if (!("locked" in log.dataset)) log.scrollTop = log.scrollHeight; }
for (const log of all("[data-stream]")) {
  const source = new EventSource(log.dataset.stream), list = log.querySelector("ol");
  told(source, "lines", ({ html }) => {
    list.insertAdjacentHTML("beforeend", html);
    while (list.childElementCount > 5000) list.firstElementChild.remove();
    follow();
  });
  on(source, "end", () => source.close());
}
on(doc, "scroll", ({ target }) => {
  if (!target.matches?.("[data-follow]")) return;
  target.toggleAttribute("data-locked", target.scrollTop + target.clientHeight < target.scrollHeight - 24);
}, true);
follow();

// -- trees: one tab stop, arrow keys inside
const LEAF = "[role=treeitem]", leaves = (tree) => all(LEAF, tree).filter((item) => !item.parentElement.closest("[aria-expanded=false]"));
function fold(item, isOpen) {
  const box = item.querySelector(":scope > details");
  if (box) box.open = isOpen;
  item.ariaExpanded = isOpen;
}
function rove() {
  for (const tree of all("[role=tree]"))
    if (!tree.querySelector(`${LEAF}[tabindex='0']`)) tree.querySelector(LEAF)?.setAttribute("tabindex", "0");
}
function walk(key, item) {
  const shown = leaves(item.closest("[role=tree]")), at = shown.indexOf(item), isOpen = item.ariaExpanded;
  let to = { ArrowDown: shown[at + 1], ArrowUp: shown[at - 1], Home: shown[0], End: shown.at(-1) }[key];
  if (key === "ArrowRight" && isOpen) { if (isOpen === "true") to = shown[at + 1]; else fold(item, true); }
  else if (key === "ArrowLeft") { if (isOpen === "true") fold(item, false); else to = item.parentElement.closest(LEAF); }
  else if (key === "Enter") item.querySelector("a")?.click();
  else if (!to) return false;
  if (to) { item.tabIndex = -1; to.tabIndex = 0; to.focus(); }
  return true;
}
on(doc, "toggle", ({ target }) => {
  const item = target.matches?.("details") && target.closest(LEAF);
  if (item) item.ariaExpanded = target.open;
}, true);
rove();

// -- buttons
on(doc, "click", async ({ target }) => {
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
on(doc, "change", ({ target }) => {
  if (target.form?.matches("[data-filter]")) target.form.requestSubmit();
  const group = target.closest("[data-tri]"), head = group?.querySelector("[data-all]");
  if (!head) return;
  const boxes = all("input[type=checkbox]:not([data-all])", group);
  if (target === head) for (const box of boxes) box.checked = head.checked;
  const on = boxes.filter((box) => box.checked).length;
  head.checked = on === boxes.length;
  head.indeterminate = on > 0 && on < boxes.length;
});

// -- the palette: the server searches
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
    line.append(...["kind", "text", "about"].map((name) => make("span", item[name], { className: name })));
    return line;
  }));
  choose(0);
}
function choose(step) {
  const lines = [...found.children], at = lines.findIndex((line) => line.ariaSelected === "true"), to = clamp(lines, at + step);
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
  const rows = new Map([["j / k", "Next, previous row"], ["o", "Open a row"], ["x", "Select a row"], ["Esc", "Close"]]);
  for (const { dataset } of all("[data-key]")) rows.set(dataset.key, dataset.about);
  $("keys-list").replaceChildren(...[...rows].map(([key, about]) => {
    const row = make("div"), cap = make("dd");
    cap.append(make("kbd", key));
    row.append(make("dt", about), cap);
    return row;
  }));
}
function move(step, here) {
  const rows = all("[data-row]");
  clamp(rows, rows.indexOf(here) + step)?.querySelector("a")?.focus();
}
on(doc, "keydown", (event) => {
  const { key, target } = event, item = target.closest?.(LEAF);
  if ((event.ctrlKey || event.metaKey) && key === "k" && $("me")) { event.preventDefault(); open("palette"); return; }
  if (item && target === item && walk(key, item)) { event.preventDefault(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || doc.querySelector("dialog[open]")) return;
  if (target.matches(TEXT)) { if (key === "Escape") target.blur(); return; }
  if (key === "Escape") shut(null);
  if (root.dataset.keys === "off") return;
  const here = target.closest("[data-row]"), wanted = first + key;
  first = key === "g" && !first ? "g " : "";
  if (first) { setTimeout(() => { first = ""; }, 1200); return; }
  const it = all("[data-key]").find((each) => each.dataset.key === wanted);
  if (it) { if (it.matches(TEXT)) { it.focus(); it.select(); } else it.click(); }
  else if (key === "j" || (key === "ArrowDown" && here)) move(1, here);
  else if (key === "k" || (key === "ArrowUp" && here)) move(-1, here);
  else if (key === "o") { const box = here?.querySelector("details"); if (box) box.open = !box.open; }
  else if (key === "x") here?.querySelector("input[type=checkbox]")?.click();
  else return;
  event.preventDefault();
});
