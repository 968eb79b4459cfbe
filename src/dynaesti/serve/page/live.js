"use strict";
// The live page: the class, one learner, the items; it follows the service's events. Whatever comes from outside is shown as text.
(() => {
  const TILES = 24, POINTS = 40, FEED = 12, PAGE = 100, MOST = 2000, KEY = "dynaesti-key", NS = "http://www.w3.org/2000/svg";
  const $ = id => document.getElementById(id);
  const { fixed } = Charts, signed = x => (x > 0 ? "+" : "") + fixed(x, 2), percent = p => `${Math.round(100 * p)} %`;
  const sleep = ms => new Promise(done => setTimeout(done, ms));
  const plural = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const link = id => `#/person/${encodeURIComponent(id)}`;

  function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(name, value);
    node.append(...children.filter(one => one !== null));
    return node;
  }

  // --- times: numbers, or ISO dates; those without a zone are shown as they are

  const dated = t => typeof t === "string";
  const at = t => dated(t) ? Date.parse(/Z$|[+-]\d\d:?\d\d$/.test(t) ? t : `${t}Z`) : t;
  const told = t => t === null ? "never" : dated(t) ? Charts.timeText(at(t), true, 60e3) : fixed(t, 2);

  const brief = t => told(t).replace(/ \d{4},/, ",");  // without the year

  // --- asking the service

  const key = () => sessionStorage.getItem(KEY);
  const headers = () => key() ? { Authorization: `Bearer ${key()}` } : {};

  async function ask(path, options = {}) {
    const found = await fetch(path, { ...options, headers: headers() });
    if (found.status === 401 || found.status === 403) { askForKey(found.status); throw new Error("no key"); }
    if (!found.ok) throw new Error((await found.json().catch(() => ({}))).detail || found.statusText);
    return found.json();
  }

  let keyGiven = () => {};
  function askForKey(status) {
    $("key-error").textContent = !key() ? "" : status === 403 ? "This key has not the role read." : "This key is not known.";
    sessionStorage.removeItem(KEY);
    show("key");
    $("key").focus();
  }
  $("key-form").addEventListener("submit", event => {
    event.preventDefault();
    sessionStorage.setItem(KEY, $("key").value.trim());
    $("key").value = "";
    keyGiven();
  });

  // --- views

  const VIEWS = { class: showClass, people: showPeople, person: showPerson, items: showItems };
  let view = null, person = null;

  function show(name) {
    view = name;
    for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== `view-${name}`;
    for (const a of document.querySelectorAll("nav a")) {
      const current = a.getAttribute("href") === (name === "class" ? "#/" : name === "person" ? "#/people" : `#/${name}`);
      if (current) a.setAttribute("aria-current", "page"); else a.removeAttribute("aria-current");
    }
  }

  async function route(event) {
    const hash = location.hash || "#/";
    if (!hash.startsWith("#/")) return;
    const [, name, rest] = /^#\/([^/]*)\/?(.*)$/.exec(hash), chosen = name in VIEWS ? name : "class";
    try { person = chosen === "person" ? decodeURIComponent(rest) : null; } catch { person = rest; }
    show(chosen);
    const shown = VIEWS[chosen]();
    if (event) $(`view-${chosen}`).querySelector("h2").focus();  // not later, when something else may have it
    try { await shown; } catch (error) { if (view === chosen) fault(error); }
  }

  function fault(error) {
    const where = { class: "class-lead", person: "person-lead", items: "items-lead", people: "found" }[view];
    if (where) $(where).textContent = error.message;
  }

  // Runs a job now; calls while it runs, or within the pause after it, become one more run.
  function gently(job, pause) {
    let running = false, again = false;
    return async () => {
      if (running) { again = true; return; }
      running = true;
      do {
        again = false;
        await job().catch(() => {});
        await sleep(pause);
      } while (again);
      running = false;
    };
  }

  // --- the class

  const tiles = new Map();  // by id: { facts, node, moved }

  async function showClass() {
    const [cohort, last] = await Promise.all([ask("cohort"), ask(`people?sort=-time&limit=${TILES}&points=${POINTS}`)]);
    tiles.clear();
    for (const facts of last.people) tiles.set(facts.id, { ...facts, moved: at(facts.time) });
    $("tiles").replaceChildren(...[...tiles.values()].map(tile => tile.node = el("li")));
    if (!tiles.size) $("tiles").append(el("li", { class: "nothing" }, "Nobody has answered yet."));
    drawTiles();
    drawClass(cohort);
    if (last.people.some(one => one.mean === null)) later();
  }

  // Right after a refit states are made anew, and numbers are missing for a moment.
  const later = gently(async () => { await sleep(1000); if (view === "class" || view === "people") await VIEWS[view](); }, 0);

  const refreshCohort = gently(async () => { if (view === "class") drawClass(await ask("cohort")); }, 3000);

  function drawClass(cohort) {
    $("class-title").textContent = cohort.people ? `${plural(cohort.people, "learner", "learners")}, ${plural(cohort.answers, "answer", "answers")}` : "Nobody has answered yet";
    $("class-lead").textContent = cohort.mean === null ? "" : `The last answer is of ${told(cohort.time)}. Mean ability ${fixed(cohort.mean, 2)}; the middle 70 % of learners are between ${fixed(cohort.lower, 2)} and ${fixed(cohort.upper, 2)}.`;
    const bins = cohort.bins, most = Math.max(1, ...bins.map(b => b.people));
    const curve = cohort.curve, box = $("cohort-chart").closest("figure");
    $("class-chart").closest("figure").hidden = !bins.length;
    box.hidden = curve.length < 2;  // both first: charts are as wide as their places
    if (bins.length) Charts.draw($("class-chart"), {
      label: "Learners by ability", height: 240,
      x: { low: bins[0].lower, high: bins[bins.length - 1].upper, title: "ability now" }, y: { low: 0, high: most, whole: true, title: "learners" },
      layers: bins.map(b => ({ kind: "bar", x0: b.lower, x1: b.upper, y0: 0, y1: b.people, colour: "var(--c0)", anywhere: true, words: () => [["ability", `${fixed(b.lower, 2)} to ${fixed(b.upper, 2)}`], ["learners", String(b.people)]] })),
    });
    $("class-caption").textContent = bins.length ? "Where everyone is now, by the mean of what is known of each." : "";
    if (!box.hidden) drawCurve($("cohort-chart"), curve, { label: "What to expect of a newcomer over time", height: 240, colour: "var(--c2)" });
    $("cohort-caption").textContent = box.hidden ? "" : "What to expect of someone of whom nothing is known, over time.";
  }

  function drawTiles() {
    const all = [...tiles.values()], points = all.flatMap(tile => tile.curve);
    const low = Math.min(...points.map(p => p.lower)), high = Math.max(...points.map(p => p.upper));
    for (const tile of all) drawTile(tile, low, high);
  }

  function drawTile(tile, low, high) {
    const fresh = tile.fresh;
    tile.fresh = false;
    const a = el("a", { href: link(tile.id), class: fresh ? "fresh" : null },
      el("span", { class: "name" }, el("span", {}, tile.id), el("span", { class: "now" }, tile.mean === null ? "…" : fixed(tile.mean, 2))),
      spark(tile.curve, low, high),
      el("span", { class: "last" }, tile.last || plural(tile.answers, "answer", "answers")));
    const focused = tile.node.contains(document.activeElement);
    tile.node.replaceChildren(a);
    if (focused) a.focus();
    if (fresh) setTimeout(() => a.classList.remove("fresh"), 1200);
  }

  // Answers at even distances: sessions would else be a line of no width.
  function spark(curve, low, high) {
    const svg = document.createElementNS(NS, "svg"), n = curve.length, span = high - low || 1;
    svg.setAttribute("viewBox", "0 0 100 40");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    const x = k => n > 1 ? 100 * k / (n - 1) : 100, y = v => 39 - 38 * (v - low) / span;
    const add = (d, style) => {
      const path = document.createElementNS(NS, "path");
      path.setAttribute("d", d);
      path.setAttribute("vector-effect", "non-scaling-stroke");
      for (const [name, value] of Object.entries(style)) path.style.setProperty(name, value);
      svg.append(path);
    };
    if (!n) return svg;
    const points = n > 1 ? curve : [curve[0], curve[0]], place = k => n > 1 ? x(k) : 100 * k;
    const line = part => points.map((p, k) => `${place(k).toFixed(1)},${y(p[part]).toFixed(1)}`);
    add(`M${[...line("lower"), ...line("upper").reverse()].join("L")}Z`, { fill: "var(--c0)", opacity: 0.2 });
    add(`M${line("mean").join("L")}`, { fill: "none", stroke: "var(--c0)", "stroke-width": 2 });
    return svg;
  }

  function moveTile(facts) {
    let tile = tiles.get(facts.id);
    if (!tile) {
      if (!tiles.size) $("tiles").replaceChildren();
      tile = { curve: [], node: el("li") };
      if (tiles.size >= TILES) {  // whoever has been silent longest makes room
        const silent = [...tiles.values()].reduce((a, b) => a.moved < b.moved ? a : b);
        tiles.delete(silent.id);
        tile.node = silent.node;
      } else $("tiles").append(tile.node);
      tiles.set(facts.id, tile);
      recall(tile, facts.id);
    }
    const late = tile.time !== undefined && at(facts.time) < at(tile.time);
    Object.assign(tile, facts, { moved: at(facts.time), fresh: true });
    tile.last = `${facts.item}: ${facts.resp}${facts.change === null ? "" : `, ${signed(facts.change)}`}`;
    if (facts.mean !== null && !late) tile.curve = [...tile.curve, facts].slice(-POINTS);
  }

  // What is known of someone who comes to the tiles.
  async function recall(tile, id) {
    const found = await ask(`people/${encodeURIComponent(id)}?points=${POINTS}&moves=0`).catch(() => null);
    if (found && tiles.get(id) === tile) {
      tile.curve = found.curve;
      drawTiles();
    }
  }

  function feed(facts) {
    const by = facts.change === null ? el("span", { class: "by" }, "first answer") : el("span", { class: `by ${facts.change < 0 ? "down" : "up"}` }, `${signed(facts.change)} to ${fixed(facts.mean, 2)}`);
    $("feed").prepend(el("li", {}, el("a", { href: link(facts.id) }, facts.id), el("span", {}, `${facts.item}: ${facts.resp}`), by));
    while ($("feed").children.length > FEED) $("feed").lastChild.remove();
  }

  // --- people

  const COLUMNS = [["id", "who"], ["mean", "ability now"], ["sd", "±"], ["band", "70 % band"], ["answers", "answers"], ["time", "last answer"]];
  let sort = "-time", shown = PAGE;

  async function showPeople() {
    const search = $("search").value;
    const found = await ask(`people?sort=${sort}&limit=${Math.min(shown, 500)}&search=${encodeURIComponent(search)}`);
    if (view !== "people" || search !== $("search").value) return;
    const head = COLUMNS.map(([name, words]) => {
      if (name === "sd" || name === "band") return el("th", { scope: "col" }, words);
      const mine = sort.replace("-", "") === name, button = el("button", { type: "button" }, words + (mine ? (sort[0] === "-" ? " ↓" : " ↑") : ""));
      button.addEventListener("click", () => { sort = mine && sort[0] === "-" ? name : mine ? `-${name}` : name === "id" ? "id" : `-${name}`; showPeople(); });
      return el("th", { scope: "col", "aria-sort": mine ? (sort[0] === "-" ? "descending" : "ascending") : null }, button);
    });
    const rows = found.people.map(one => el("tr", {}, el("th", { scope: "row" }, el("a", { href: link(one.id) }, one.id)),
      ...(one.mean === null ? ["…", "", ""] : [fixed(one.mean, 2), fixed(one.sd, 2), `${fixed(one.lower, 2)} to ${fixed(one.upper, 2)}`]).map(text => el("td", {}, text)),
      el("td", {}, one.answers.toLocaleString("en")), el("td", {}, told(one.time))));
    $("people-table").replaceChildren(el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
    $("found").textContent = `${plural(found.total, "learner", "learners")}`;
    if (found.people.some(one => one.mean === null)) later();
    $("more-people").hidden = found.total <= found.people.length || shown >= 500;
  }

  const refreshPeople = gently(async () => { if (view === "people") await showPeople(); }, 1500);
  const searchPeople = gently(async () => { shown = PAGE; if (view === "people") await showPeople(); }, 120);
  $("search").addEventListener("input", searchPeople);
  $("search-form").addEventListener("submit", event => { event.preventDefault(); const first = $("people-table").querySelector("tbody a"); if (first) first.click(); });
  $("more-people").addEventListener("click", () => { shown += PAGE; showPeople(); });

  // --- one learner

  let known = null, target = "";

  async function showPerson() {
    const id = person;
    if (!known || known.id !== id) {
      known = null;
      $("person-title").textContent = id;
      $("person-lead").textContent = "";
      for (const name of ["person-chart", "moves-table", "next-table"]) $(name).replaceChildren();
    }
    const facts = await ask(`people/${encodeURIComponent(id)}?points=200&moves=20`);
    if (view !== "person" || person !== id) return;
    known = facts;
    drawPerson();
    drawMoves(facts.moved);
    await showNext();
  }

  async function showNext() {
    const id = person, found = await ask(`people/${encodeURIComponent(id)}/next?count=5${target ? `&target=${target}` : ""}`);
    if (view !== "person" || person !== id) return;
    table($("next-table"), ["item", "chance", "information"], found.items.map(one => [one.item, percent(one.expected), fixed(one.information, 2)]), "There is nothing to ask.");
  }

  function drawPerson() {
    if (known.mean === null) { $("person-lead").textContent = "Being reckoned anew …"; return; }
    $("person-title").textContent = `${known.id}: ${fixed(known.mean, 2)}`;
    $("person-lead").textContent = `With 70 % probability between ${fixed(known.lower, 2)} and ${fixed(known.upper, 2)}, after ${plural(known.answers, "answer", "answers")}, the last of ${told(known.time)}.`;
    if (known.curve.length) drawCurve($("person-chart"), known.curve, { label: `Ability of ${known.id} over time`, height: 320, colour: "var(--c0)", dots: true });
  }

  function drawMoves(moved) {
    const rows = moved.map(one => [one.item, String(one.resp), fixed(one.expected, 2), { text: signed(one.change), class: one.change < 0 ? "down" : "up" }, brief(one.time)]);
    table($("moves-table"), ["item", "response", "expected", "moved by", "when"], rows, "Nothing yet.");
  }

  function table(node, head, rows, nothing) {
    const cell = (value, k) => el(k ? "td" : "th", { scope: k ? null : "row", class: value.class || null }, value.text || value);
    node.replaceChildren(el("thead", {}, el("tr", {}, ...head.map(words => el("th", { scope: "col" }, words)))),
      el("tbody", {}, ...(rows.length ? rows.map(row => el("tr", {}, ...row.map(cell))) : [el("tr", {}, el("td", { colspan: head.length, class: "nothing words" }, nothing))])));
  }

  function drawCurve(node, curve, { label, height, colour, dots }) {
    const points = curve.map(p => [at(p.time), p.mean, p.lower, p.upper]), dates = dated(curve[0].time), last = points[points.length - 1];
    const low = Math.min(...points.map(p => p[2])), high = Math.max(...points.map(p => p[3])), room = 0.06 * (high - low || 1);
    const words = (p, time) => [["when", time], ["ability", fixed(p[1], 2)], ["70 % band", `${fixed(p[2], 2)} to ${fixed(p[3], 2)}`]];
    Charts.draw(node, {
      label, height, x: { low: points[0][0], high: last[0], dates, title: dates ? "" : "time" }, y: { low: low - room, high: high + room, title: "ability" },
      layers: [{ kind: "band", points, colour }, { kind: "line", points, colour, words }, ...(dots ? [{ kind: "dot", x: last[0], y: last[1], r: 5, colour }] : [])],
    });
  }

  const refreshPerson = gently(async () => { if (view === "person") await showPerson(); }, 400);

  for (const button of $("next-choice").children) button.addEventListener("click", () => {
    target = button.dataset.target;
    for (const one of $("next-choice").children) one.setAttribute("aria-pressed", String(one === button));
    showNext().catch(fault);
  });

  // The event itself moves the curve; what moved it and what comes next are asked for after.
  function movePerson(facts) {
    if (!known || facts.id !== known.id) return;
    const late = known.time !== null && at(facts.time) <= at(known.time);
    known = { ...known, ...facts, curve: late || facts.mean === null ? known.curve : [...known.curve, facts] };
    drawPerson();
    refreshPerson();
  }

  // --- items

  async function showItems() {
    const search = $("items-search").value, found = await ask(`items?limit=500&search=${encodeURIComponent(search)}`);
    if (view !== "items" || search !== $("items-search").value) return;
    const flagged = found.items.filter(one => one.drift && one.drift.flagged);
    const looked = found.items.some(one => one.drift);
    $("items-lead").textContent = !looked ? "Whether items drift is looked at by dynaesti refit, which has not run yet." : flagged.length ? `${plural(flagged.length, "item drifts", "items drift")}: they became harder or easier than the others since they were fitted.` : "No item was found to drift.";
    const names = [...new Set(found.items.flatMap(one => Object.keys(one.parameters)))];
    const head = ["item", ...names, "answers", "drift"].map((words, k, all) => el("th", { scope: "col", class: k === all.length - 1 ? "words" : null }, words));
    const rows = [...flagged, ...found.items.filter(one => !flagged.includes(one))].map(one => el("tr", {}, el("th", { scope: "row" }, one.item),
      ...names.map(name => el("td", {}, name in one.parameters ? fixed(one.parameters[name], 2) : "")), el("td", {}, one.answers.toLocaleString("en")),
      el("td", { class: "words" }, one.drift && one.drift.flagged ? el("span", { class: "flag" }, "drifts") : null, one.drift ? ` ${one.drift.sentence}` : "")));
    $("items-table").replaceChildren(el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
    $("items-found").textContent = plural(found.total, "item", "items") + (found.total > found.items.length ? `, the first ${found.items.length} are shown` : "");
    $("queued").replaceChildren(...(found.queued.length ? [el("h3", {}, "Waiting for a refit"), el("ul", { class: "words" }, ...found.queued.map(one => el("li", {}, `${one.item}: ${plural(one.answers, "answer", "answers")}`)))] : []));
  }

  $("items-search").addEventListener("input", gently(async () => { if (view === "items") await showItems(); }, 120));
  $("items-form").addEventListener("submit", event => event.preventDefault());

  // --- events

  let pending = [], drawing = null;

  // Drawn at most ten times a second, however many answers come.
  function happened(kind, facts) {
    pending.push([kind, facts]);
    if (pending.length > MOST) pending = [["lost", {}]];
    drawing = drawing || setTimeout(draw, 100);
  }

  function draw() {
    const found = pending, answers = found.filter(([kind]) => kind === "answer").map(([, facts]) => facts);
    pending = [];
    drawing = null;
    if (answers.length < found.length) { route(); return; }  // another scorer, or events were lost: everything anew
    if (view === "class") {
      answers.forEach(moveTile);
      answers.slice(-FEED).forEach(feed);
      drawTiles();
      refreshCohort();
    }
    if (view === "person") answers.forEach(movePerson);
    if (view === "people") refreshPeople();
  }

  function status(state, words) {
    $("status").dataset.state = state;
    $("status").textContent = words;
  }

  async function listen() {
    const found = await fetch("events", { headers: headers(), cache: "no-store" });
    if (found.status === 401 || found.status === 403) {
      askForKey(found.status);
      status("waiting", "waits for a key");
      await new Promise(done => { keyGiven = done; });
      return;
    }
    if (!found.ok) throw new Error(found.statusText);
    status("live", "live: curves move as answers come");
    await route();  // once the stream is open, so that nothing falls between
    document.documentElement.dataset.ready = "yes";
    const reader = found.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const kind = /^event: (.*)$/m.exec(part), data = /^data: (.*)$/m.exec(part);
        if (kind && data) happened(kind[1], JSON.parse(data[1]));
      }
    }
  }

  async function follow() {
    for (;;) {
      await listen().catch(() => { if (!view) route(); });
      if (view !== "key") { status("waiting", "the service is away; trying again …"); await sleep(1000); }
    }
  }

  let redraw = null;
  window.addEventListener("resize", () => { clearTimeout(redraw); redraw = setTimeout(() => { if (view === "person" && known) drawPerson(); else if (view === "class") showClass().catch(() => {}); }, 150); });
  window.addEventListener("hashchange", route);
  follow();
})();
