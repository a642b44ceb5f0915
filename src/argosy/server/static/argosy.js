// The small machine under every page. It shows what the server says and knows nothing itself: no state, no business.
// Pages read and forms post without it.
const $ = (id) => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const root = document.documentElement;
const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });
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
let spoken = 0, waiting = "";
function say(text) { // at most one sentence in five seconds; the last one wins
  const left = spoken + 5000 - Date.now();
  if (left > 0) {
    if (!waiting) setTimeout(() => { const last = waiting; waiting = ""; say(last); }, left);
    waiting = text;
    return;
  }
  spoken = Date.now();
  $("says").textContent = text;
}
const isEdited = (field) => field.type !== "hidden" && (field.checked !== field.defaultChecked
  || ("defaultValue" in field && field.value !== field.defaultValue));
function isStill(old) { // what somebody reads or writes right now is not pulled away
  const focused = document.activeElement, chosen = getSelection();
  return old.closest("[data-still]") || all("input, textarea", old).some(isEdited)
    || (old.contains(focused) && focused.matches("input, textarea, select"))
    || (chosen && !chosen.isCollapsed && chosen.containsNode(old, true));
}
function pathTo(node, top) {
  const steps = [];
  for (; node !== top; node = node.parentElement) steps.unshift([...node.parentElement.children].indexOf(node));
  return steps;
}
function replace(id, html) {
  const old = $(id);
  if (!old) return Boolean(html);
  if (isStill(old)) { $("changed").hidden = false; return false; }
  const box = make("template", "", { innerHTML: html || "" }), made = box.content.firstElementChild;
  if (!made) { old.remove(); return false; }
  for (const field of all("input[name=csrf]", made)) field.value = document.body.dataset.csrf;
  const opened = all("details", old);
  all("details", made).forEach((each, at) => {
    const before = (each.id && opened.find((one) => one.id === each.id)) || opened[at];
    if (before) each.open = before.open;
  });
  if (old.matches("details")) made.open = old.open;
  if (old.classList.contains("is-here")) made.classList.add("is-here");
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const path = focused && !focused.id && pathTo(focused, old);
  const { scrollTop } = old;
  old.replaceWith(made);
  made.scrollTop = scrollTop;
  if (focused) (focused.id ? $(focused.id) : path.reduce((at, step) => at?.children[step], made))?.focus({ preventScroll: true });
  return false;
}
function mark() { // title and favicon say the worst
  const it = $("page-state");
  if (!it) return;
  document.title = `${it.dataset.title} – ${document.body.dataset.site}`;
  const icon = $("favicon");
  icon.href = icon.dataset[it.dataset.state] || icon.dataset.ok;
}
let heard = Date.now();
function asOf(at, state) {
  heard = Date.now();
  const time = $("as-of")?.querySelector("time");
  if (time && at) { time.dateTime = at; time.textContent = at.slice(11, 19); }
  beat(state);
}
function beat(state) {
  const pulse = $("pulse");
  if (!pulse || pulse.dataset.state === state) return;
  if (pulse.dataset.state === "lost" && state === "live") say("Connected again.");
  pulse.dataset.state = state;
  pulse.title = { live: "live", lost: "connection lost; this page may be old", wait: "connecting" }[state] || "";
  root.classList.toggle("is-stale", state === "lost");
  if (state === "lost") say("Connection lost. This page may be old.");
}
function listen() {
  const source = new EventSource(document.body.dataset.live);
  let isOver = false;
  source.addEventListener("patch", (event) => {
    const { at, parts, say: sentence } = JSON.parse(event.data);
    let fresh = 0;
    for (const [id, html] of Object.entries(parts || {})) fresh += replace(id, html);
    if (fresh) { $("changed").hidden = false; $("changed").firstElementChild.textContent = `${fresh} new.`; }
    asOf(at, "live");
    tick(); mark(); rove(); follow();
    if (sentence) say(sentence);
  });
  source.addEventListener("beat", (event) => asOf(JSON.parse(event.data || "{}").at, "live"));
  source.addEventListener("open", () => beat("live"));
  source.addEventListener("bye", () => { isOver = true; source.close(); beat("lost"); say("You are signed out."); });
  source.addEventListener("error", () => {
    if (isOver) return;
    if (Date.now() - heard > 5000) beat("lost");
    if (source.readyState === EventSource.CLOSED) { isOver = true; setTimeout(listen, 5000); }
  });
  setInterval(() => Date.now() - heard > 40000 && beat("lost"), 5000);
  addEventListener("pagehide", () => { isOver = true; source.close(); }, { once: true });
}
if (document.body.dataset.live) listen();
addEventListener("pageshow", (event) => event.persisted && location.reload());
$("reload")?.addEventListener("click", () => location.reload());

// -- logs: follow the end until the reader scrolls up
function follow() { for (const log of all("[data-follow]")) if (!log.dataset.locked) log.scrollTop = log.scrollHeight; }
document.addEventListener("scroll", ({ target }) => {
  if (!target.matches?.("[data-follow]")) return;
  if (target.scrollTop + target.clientHeight < target.scrollHeight - 24) target.dataset.locked = "1";
  else delete target.dataset.locked;
}, true);
follow();

// -- trees: one stop for Tab, arrows inside
const leaves = (tree) => all("[role=treeitem]", tree).filter((item) => !item.parentElement.closest("details:not([open])"));
function rove() {
  for (const tree of all("[role=tree]"))
    if (!tree.querySelector("[role=treeitem][tabindex='0']")) tree.querySelector("[role=treeitem]")?.setAttribute("tabindex", "0");
}
function walk(event, item) {
  const tree = item.closest("[role=tree]"), box = item.querySelector(":scope > details"), shown = leaves(tree), at = shown.indexOf(item);
  const parent = item.parentElement.closest("[role=treeitem]");
  let to = { ArrowDown: shown[at + 1], ArrowUp: shown[at - 1], Home: shown[0], End: shown.at(-1) }[event.key];
  if (event.key === "ArrowRight" && box) { if (box.open) to = shown[at + 1]; else box.open = true; }
  else if (event.key === "ArrowLeft") { if (box?.open) box.open = false; else to = parent; }
  else if (event.key === "Enter") item.querySelector("a")?.click();
  else if (!to) return false;
  if (to) { item.tabIndex = -1; to.tabIndex = 0; to.focus(); }
  return true;
}
document.addEventListener("toggle", ({ target }) => {
  const item = target.matches?.("details") && target.closest("[role=treeitem]");
  if (item) item.ariaExpanded = target.open;
}, true);
rove();

// -- buttons
document.addEventListener("click", async ({ target }) => {
  const copy = target.closest?.("[data-copy]"), opens = target.closest?.("[data-opens]");
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy);
    copy.classList.add("is-done");
    setTimeout(() => copy.classList.remove("is-done"), 1500);
    say("Copied.");
  } else if (opens) open(opens.dataset.opens);
  else if (target.matches?.("dialog")) target.close();
  for (const facet of all("details.facet[open]")) if (!facet.contains(target)) facet.open = false;
});
function open(id) {
  $("me")?.hidePopover?.();
  if (id === "keys") help();
  if (id === "palette") find("");
  if (!$(id).open) $(id).showModal();
}
document.addEventListener("change", ({ target }) => target.form?.matches("[data-filter]") && target.form.requestSubmit());

// -- the palette: the server answers what is found
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
  const to = lines[Math.min(lines.length - 1, Math.max(0, at + step))];
  for (const line of lines) line.ariaSelected = String(line === to);
  field.setAttribute("aria-activedescendant", to?.id || "");
  to?.scrollIntoView({ block: "nearest" });
}
function go(line) { if (line?.dataset.url?.startsWith("/")) location.assign(line.dataset.url); }
field?.addEventListener("input", () => find(field.value));
field?.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) choose(step);
  else if (event.key === "Enter") go(found.querySelector("[aria-selected=true]"));
  else return;
  event.preventDefault();
});
found?.addEventListener("click", ({ target }) => go(target.closest("li")));

// -- keys: the page says which, by data-key
let first = "";
const hasKeys = () => root.dataset.keys !== "off";
function help() {
  const rows = [["j / k", "Next, previous row"], ["o", "Open or close a row"], ["x", "Select a row"], ["Esc", "Close"]];
  for (const it of all("[data-key]")) if (!rows.some(([key]) => key === it.dataset.key)) rows.push([it.dataset.key, it.dataset.about]);
  $("keys-list").replaceChildren(...rows.map(([key, about]) => {
    const row = make("div", ""), cap = make("dd", "");
    cap.append(make("kbd", key));
    row.append(make("dt", about), cap);
    return row;
  }));
}
function move(step) {
  const rows = all("[data-row]"), at = rows.findIndex((row) => row.classList.contains("is-here"));
  const to = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  rows[at]?.classList.remove("is-here");
  to?.classList.add("is-here");
  to?.querySelector("a")?.focus();
}
document.addEventListener("keydown", (event) => {
  const { key, target } = event, item = target.closest?.("[role=treeitem]");
  if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "k" && $("palette") && $("pulse")) { event.preventDefault(); open("palette"); return; }
  if (item && target === item && walk(event, item)) { event.preventDefault(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (target.matches("input:not([type=checkbox]), textarea, select")) { if (key === "Escape") target.blur(); return; }
  if (key === "Escape") { for (const facet of all("details.facet[open]")) facet.open = false; return; }
  if (!hasKeys()) return;
  const here = target.closest("[data-row]") || document.querySelector("[data-row].is-here");
  const wanted = first + key;
  first = key === "g" && !first ? "g " : "";
  if (first) { setTimeout(() => { first = ""; }, 1200); return; }
  const it = all("[data-key]").find((each) => each.dataset.key === wanted);
  if (it) { if (it.matches("input, textarea")) { it.focus(); it.select(); } else it.click(); }
  else if (key === "j" || (key === "ArrowDown" && here)) move(1);
  else if (key === "k" || (key === "ArrowUp" && here)) move(-1);
  else if (key === "o") { const box = here?.querySelector("details"); if (box) box.open = !box.open; }
  else if (key === "x") here?.querySelector("input[type=checkbox]")?.click();
  else return;
  event.preventDefault();
});
