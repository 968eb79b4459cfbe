"use strict";
(() => {
  const MOST_SHOWN = 24, MOST_LINES = 12, MOST_ROWS = 400, COLOURS = 8, DASHES = ["none", "7 4", "2 3"];
  let D, printing = false, selected = [], order = { column: null, down: false }, changeOrder = { column: null, down: true }, chosen = 0, verdict = null;
  const drawn = new Map(), { draw, tip, fixed } = Charts;
  const $ = id => document.getElementById(id);

  // Every text from the data is set as textContent: a name is never markup.
  function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    for (const child of children) node.append(child instanceof Node ? child : document.createTextNode(child === null || child === undefined ? "" : String(child)));
    return node;
  }
  const list = (id, texts) => $(id).replaceChildren(...texts.map(text => el("li", {}, text)));
  const whole = n => n.toLocaleString("en");
  const number = (x, digits = 2) => x === null || x === undefined ? "" : digits ? fixed(x, digits) : whole(x);
  const signed = x => (x > 0 ? "+" : "") + number(x);
  const range = (low, high) => `${number(low)} to ${number(high)}`;
  const percentage = p => p >= 0.995 ? "> 99 %" : p <= 0.005 ? "< 1 %" : `${(100 * p).toFixed(0)} %`;
  const when = t => Charts.timeText(t, D.facts.dates, D.facts.dates ? (D.facts.span > 20 * 864e5 ? 864e5 : 6e4) : D.facts.span / 1000);
  const colour = k => `var(--c${k % COLOURS})`;
  const band = () => `${Math.round(100 * D.facts.level)} % band`;

  // Letters without their accents, and German ones written out too: "muller" and "mueller" find Müller.
  const OTHERS = { ß: "ss", ø: "o", ł: "l", đ: "d", ð: "d", ı: "i", æ: "ae", œ: "oe", þ: "th" }, GERMAN = { ä: "ae", ö: "oe", ü: "ue" };
  const bare = text => text.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "").replace(/[ßøłđðıæœþ]/g, c => OTHERS[c]);
  const folded = text => `${bare(text)}\n${bare(text.normalize("NFC").toLowerCase().replace(/[äöü]/g, c => GERMAN[c]))}`;

  // A word or number that says what it means: under the pointer, in focus, and by its link.
  function term(text, key) {
    const link = el("a", { class: "term", href: `#term-${key}`, "aria-describedby": "tip" }, text), said = D.terms[key][1];
    const show = event => { const box = link.getBoundingClientRect(); tip(said, event.clientX || box.left, event.clientY || box.bottom - 12); };
    link.addEventListener("pointerenter", show);
    link.addEventListener("focus", show);
    for (const gone of ["pointerleave", "blur", "click"]) link.addEventListener(gone, () => tip(null));
    return link;
  }
  const phrase = parts => parts.map(part => typeof part === "string" ? part : term(...part));

  function table(caption, heads, rows) {
    return el("table", {}, el("caption", {}, el("span", {}, caption)),
      el("thead", {}, el("tr", {}, ...heads.map(head => el("th", { scope: "col" }, head)))),
      el("tbody", {}, ...rows.map(row => el("tr", {}, ...row.map((cell, k) => el(k ? "td" : "th", k ? {} : { scope: "row" }, cell))))));
  }

  // Charts are kept as what makes them, so that they can be drawn anew at another width.
  function chart(name, make) {
    drawn.set(name, make);
    draw($(`chart-${name}`), make());
  }
  const again = () => drawn.forEach((make, name) => draw($(`chart-${name}`), make()));

  function reach(values, least = 0) {
    const known = values.filter(v => v !== null), low = Math.min(...known), high = Math.max(...known), pad = Math.max(least, 0.04 * (high - low)) || 0.5;
    return { low: low - pad, high: high + pad };
  }
  const timeAxis = times => ({ low: Math.min(...times), high: Math.max(...times), dates: D.facts.dates, title: D.facts.time_title });
  const abilityAxis = (values, title = "ability") => ({ ...reach(values, 0.1), title });

  // --- in short

  function summary() {
    const f = D.facts;
    $("title").textContent = document.title;
    $("lead").replaceChildren(...phrase(D.lead));
    $("headline").textContent = D.headline;
    $("cautions").hidden = !D.cautions.length;
    $("cautions").querySelector("ul").replaceChildren(...D.cautions.map(text => el("li", {}, text)));
    $("findings").replaceChildren(...D.findings.map(finding => el("li", {}, el("h3", {}, finding.title), el("p", {}, ...phrase(finding.parts)))));
    const c = D.quantiles, quantiles = f.few ? [] : c.t.map((t, k) => [t, c.mid[k], c.low[k], c.high[k], c.n[k]]).filter(row => row[1] !== null);
    const groups = [...new Set(D.means.map(row => row.group))];
    const means = groups.map(name => ({ name, points: D.means.filter(row => row.group === name && row.m !== null).map(row => [row.t, row.m, row.l, row.u]) })).filter(g => g.points.length);
    $("table-cohort").replaceChildren(
      ...(means.length ? [table("Mean ability", ["who", f.time_title || "when", "mean", `${band()} from`, "to"], D.means.map(r => [r.group, when(r.t), number(r.m), number(r.l), number(r.u)]))] : []),
      ...(quantiles.length ? [table("People", [f.time_title || "when", "10 % are below", "half are below", "90 % are below", "people"], quantiles.map(r => [when(r[0]), number(r[2]), number(r[1]), number(r[3]), whole(r[4])]))] : []));
    const lines = quantiles.length ? [] : D.people.curves.slice(0, MOST_LINES);
    $("chart-cohort").closest("section").querySelector("details").hidden = !means.length && !quantiles.length;
    $("cap-cohort").replaceChildren(...phrase(D.caption));
    if (f.still) return still();
    chart("cohort", () => cohortChart(means, quantiles, lines));
  }

  // Abilities that do not move: everyone in a row, and no curves.
  function still() {
    $("h-changes").textContent = "Everyone's ability";
    document.querySelector('nav a[href="#changes"]').textContent = "Everyone's ability";
    document.querySelector('nav a[href="#people"]').closest("li").hidden = true;
    $("people").hidden = true;
    $("chart-cohort").closest("section").querySelector("details").hidden = true;
    chart("cohort", abilitiesChart);
  }

  function abilitiesChart() {
    const { columns, bands } = D.changes, rows = columns.who.map((_, k) => k).sort((a, b) => columns.ability[a] - columns.ability[b]), n = rows.length, layers = [];
    const words = k => [["who", columns.who[k]], ["ability", number(columns.ability[k])], [band(), range(...bands[k])]];
    if (n > 150) {
      layers.push({ kind: "band", points: rows.map((k, j) => [j, columns.ability[k], ...bands[k]]), colour: colour(0), opacity: 0.25 });
      layers.push({ kind: "line", points: rows.map((k, j) => [j, columns.ability[k]]), colour: colour(0), words: v => words(rows[Math.round(v[0])]) });
    } else rows.forEach((k, j) => layers.push({ kind: "stroke", x0: j, x1: j, y0: bands[k][0], y1: bands[k][1], colour: "var(--grey)", width: 3 }, { kind: "dot", x: j, y: columns.ability[k], r: 4, reach: 14, colour: colour(0), words: () => words(k) }));
    return { height: 330, label: "Everyone's ability with its band, from the least to the most able.", x: { low: -0.7, high: n - 0.3, title: `${whole(n)} people, from the least to the most able`, ticks: [] }, y: abilityAxis(bands.flat()), layers };
  }

  function cohortChart(means, quantiles, lines) {
    const f = D.facts, layers = [], legend = [], y = [], t = [];
    if (quantiles.length) {
      layers.push({ kind: "band", points: quantiles, colour: "var(--grey)", opacity: 0.16 });
      legend.push({ name: "the middle 80 % of people", colour: "var(--grey)", shape: "area" });
      if (!means.length) {
        layers.push({ kind: "line", points: quantiles, colour: colour(0), words: (v, at) => [["when", at], ["half of people below", number(v[1])], ["middle 80 % of people", range(v[2], v[3])]] });
        legend.unshift({ name: "half of people are below this line", colour: colour(0) });
      }
      quantiles.forEach(q => { y.push(q[2], q[3]); t.push(q[0]); });
    }
    for (const [k, c] of lines.entries()) {
      layers.push({ kind: "line", points: c.t.map((at, j) => [at, c.m[j]]), colour: "var(--grey)", width: 1.3, words: (v, at) => [["who", D.people.names[k]], ["when", at], ["ability", number(v[1])]] });
      y.push(...c.m); t.push(...c.t);
    }
    if (lines.length) legend.push({ name: lines.length < f.people ? `${lines.length} of the people` : "each person", colour: "var(--grey)" });
    for (const [k, g] of means.entries()) {
      const has = g.points.some(p => p[2] !== null);
      if (has) layers.push({ kind: "band", points: g.points, colour: colour(k), opacity: 0.28 });
      layers.push({ kind: "line", points: g.points, colour: colour(k), width: 3, dash: DASHES[Math.floor(k / COLOURS) % 3], words: (v, at) => [["mean of", f.groups.length ? g.name : "everyone"], ["when", at], ["ability", number(v[1])], ...(has ? [[band(), range(v[2], v[3])]] : [])] });
      legend.splice(k, 0, { name: f.groups.length ? `mean of ${g.name}` : "mean of everyone", colour: colour(k), shape: DASHES[Math.floor(k / COLOURS) % 3] === "none" ? "line" : DASHES[Math.floor(k / COLOURS) % 3] });
      g.points.forEach(p => { y.push(p[1], p[2], p[3]); t.push(p[0]); });
    }
    return { height: 330, label: `Line chart of ability over time. ${D.headline}.`, x: timeAxis(t), y: abilityAxis(y), layers, legend };
  }

  // --- who rose, who fell

  function sortedRows(columns, rows, by) {
    if (!by.column) return rows;
    const values = columns[by.column], sign = by.down ? -1 : 1;
    return rows.sort((a, b) => values[a] === null ? 1 : values[b] === null ? -1 : sign * (typeof values[a] === "number" ? values[a] - values[b] : values[a].localeCompare(values[b], "en", { numeric: true })));
  }

  function headings(names, by, columns, again) {
    return el("tr", {}, ...names.map(name => {
      const [text, key] = D.headings[name] || [name, null];
      if (printing) return el("th", { scope: "col" }, text);  // what can be pressed is not repeated on every sheet
      const button = el("button", { type: "button" }, text, by.column === name ? (by.down ? " ↓" : " ↑") : "");
      button.addEventListener("click", () => again({ column: name, down: by.column === name ? !by.down : typeof columns[name].find(v => v !== null) === "number" }));
      const head = el("span", { class: "head" }, button);
      if (key) { const help = term("?", key); help.setAttribute("aria-label", `What ${text} means`); head.append(help); }
      return el("th", { scope: "col", class: name === "verdict" ? "verdict" : "", "aria-sort": by.column === name ? (by.down ? "descending" : "ascending") : "none" }, head);
    }));
  }

  // A change with its band on a common scale: a bar, a dot, and a line at no change.
  function spark([low, high], middle, [least, most]) {
    const at = v => 5 + 110 * (v - least) / (most - least), svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [key, value] of Object.entries({ width: 120, height: 14, viewBox: "0 0 120 14", "aria-hidden": "true" })) svg.setAttribute(key, value);
    const part = (tag, attributes, style) => { const node = document.createElementNS("http://www.w3.org/2000/svg", tag); for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v); node.setAttribute("style", style); svg.append(node); };
    const ink = middle >= 0 ? "var(--c0)" : "var(--c1)";
    part("line", { x1: at(0), x2: at(0), y1: 0, y2: 14 }, "stroke:var(--grey)");
    part("line", { x1: at(low), x2: at(high), y1: 7, y2: 7 }, `stroke:${ink};stroke-width:4;opacity:.45`);
    part("circle", { cx: at(middle), cy: 7, r: 3.5 }, `fill:${ink}`);
    return svg;
  }

  function verdicts() {
    $("verdicts").hidden = !D.changes.columns.verdict;
    const all = D.changes.columns.verdict || [], kinds = ["rose", "not sure", "fell"];
    $("verdicts").replaceChildren(...[null, ...kinds].map(kind => {
      const button = el("button", { type: "button", "aria-pressed": String(verdict === kind) }, `${kind || "everyone"} (${whole(kind ? all.filter(v => v === kind).length : all.length)})`);
      button.addEventListener("click", () => { verdict = kind; verdicts(); drawChanges(); });
      return button;
    }));
  }

  function drawChanges() {
    const columns = D.changes.columns, heads = Object.keys(columns), main = D.facts.still ? "ability" : "change";
    changeOrder.column = changeOrder.column || main;
    if (!heads.length) {
      $("changes").querySelector(".tools").hidden = true;
      $("table-changes").replaceChildren(el("p", { class: "note" }, "Everybody answered at one time only, so no change can be seen."));
      return;
    }
    const wanted = printing ? "" : bare($("change-filter").value.trim());
    const named = k => folded([columns.who[k], columns.group ? columns.group[k] : ""].join(" "));
    let rows = sortedRows(columns, columns.who.map((_, k) => k).filter(k => (!wanted || named(k).includes(wanted)) && (printing || !verdict || columns.verdict[k] === verdict)), changeOrder);
    const total = rows.length, ends = D.changes.bands.flat(), widest = [Math.min(...ends, -0.1), Math.max(...ends, 0.1)];
    rows = printing ? rows : rows.slice(0, MOST_ROWS);
    const cells = (k, name) => typeof columns[name][k] === "string" ? columns[name][k] : name === "probability" ? percentage(columns[name][k]) : name === "answers" ? whole(columns[name][k]) : name === "±" || name === "ability" ? number(columns[name][k]) : signed(columns[name][k]);
    const body = el("tbody", {}, ...rows.map(k => {
      const pick = D.facts.still ? el("span", {}, columns.who[k]) : el("button", { type: "button", "aria-label": `Show the curve of ${columns.who[k]}` }, columns.who[k]);
      if (!D.facts.still) pick.addEventListener("click", () => { add(D.changes.shown[k]); $("people").scrollIntoView(); });
      const row = el("tr", {}, ...heads.map((name, j) => j ? el("td", name === "verdict" ? { class: `verdict ${columns.verdict[k].replace(" ", "-")}` } : {}, cells(k, name)) : el("th", { scope: "row" }, pick)));
      row.children[heads.indexOf(main)].append(" ", spark(D.changes.bands[k], columns[main][k], widest));
      return row;
    }));
    const more = total > rows.length ? ` The first ${rows.length} of ${whole(total)} rows; filter or sort to see others.` : total ? "" : " Nobody.";
    $("table-changes").replaceChildren(el("table", {}, el("caption", {}, el("span", {}, el("span", { class: "screen" }, D.facts.still ? "Press a heading to sort." : "Press a heading to sort, a name to see the curve."), more)), el("thead", {}, headings(heads, changeOrder, columns, by => { changeOrder = by; drawChanges(); })), body));
  }

  // --- curves of single people

  function pickFirst() {
    const n = D.people.n.map((n, k) => [n, k]).sort((a, b) => b[0] - a[0]);
    if (n.length <= 6) { selected = n.map(pair => pair[1]).sort((a, b) => a - b); return; }
    const change = k => { const m = D.people.curves[k].m; return m[m.length - 1] - m[0]; };  // who rose most, who fell most, and one between; of those who answered much
    const busy = n.filter((pair, j) => j < 5 || pair[0] >= 0.5 * n[Math.floor(n.length / 2)][0]).map(pair => pair[1]).sort((a, b) => change(b) - change(a));
    selected = [...new Set([busy[0], busy[Math.floor(busy.length / 2)], busy[busy.length - 1]])];
  }

  function add(person) {
    const name = D.people.names[person], answers = `${name}: ${whole(D.people.n[person])} answers.`;
    if (!selected.includes(person)) {
      if (selected.length >= MOST_SHOWN) { $("found").textContent = `${name} was not added: the chart shows ${MOST_SHOWN} people at most. Take one away first.`; return; }
      selected = [...selected, person];
    }
    $("found").textContent = answers;
    $("who").value = "";
    $("matches").replaceChildren();
    drawPeople();
  }

  function interpolate(c, t) {
    const k = c.t.findIndex(x => t <= x);
    return k < 0 ? c.m[c.m.length - 1] : k === 0 || c.t[k] === c.t[k - 1] ? c.m[k] : c.m[k - 1] + (c.m[k] - c.m[k - 1]) * (t - c.t[k - 1]) / (c.t[k] - c.t[k - 1]);
  }

  // Answers of one sitting, as wide as a mark, that moved the curve the same way are one mark.
  function marksOf(person, stretch) {
    const c = D.people.curves[person], a = D.people.answers[person], sittings = new Map();
    a.t.forEach((t, j) => {
      const key = `${Math.floor(t / stretch)} ${a.d[j] >= 0}`;
      sittings.set(key, [...(sittings.get(key) || []), j]);
    });
    return [...sittings.values()].map(rows => {
      const t = rows.reduce((sum, j) => sum + a.t[j], 0) / rows.length, moved = rows.reduce((sum, j) => sum + a.d[j], 0), up = a.d[rows[0]] >= 0;
      const largest = [...rows].sort((i, j) => Math.abs(a.d[j]) - Math.abs(a.d[i])).slice(0, 4);
      const said = largest.map(j => [D.items.labels[a.i[j]], `answered ${Charts.fixed(a.y[j], 4).replace(/\.?0+$/, "")}`]);
      return { t, m: interpolate(c, t), up, moved, words: () => [["who", D.people.names[person]], ["when", when(t)], [rows.length === 1 ? "one answer moved the curve by" : `${rows.length} answers moved the curve by`, signed(moved)], ...said, ...(rows.length > 4 ? [["and", `${rows.length - 4} more`]] : [])] };
    });
  }

  function drawPeople() {
    const names = selected.map(k => D.people.names[k]).join(", ");
    $("chips").replaceChildren(...selected.map((k, j) => {
      const sample = el("span", { class: "swatch", style: `border-top: 4px ${["solid", "dashed", "dotted"][Math.floor(j / COLOURS) % 3]} ${colour(j)}` });
      const button = el("button", { type: "button", "aria-label": `Remove ${D.people.names[k]}` }, sample, D.people.names[k], el("span", { class: "close", "aria-hidden": "true" }, " ×"));
      button.addEventListener("click", () => { selected = selected.filter(other => other !== k); drawPeople(); });
      return el("li", {}, button);
    }));
    $("cap-people").textContent = selected.length ? `Ability of ${names}, each with a ${band()}, from the first answer to the last. ▲ answers that raised what is known of a person then, ▼ that lowered it; the larger, the more.` : "Nobody is picked; find a person above.";
    $("table-people").replaceChildren(table("Ability at times", ["who", D.facts.time_title || "when", "ability", `${band()} from`, "to"], selected.flatMap(k => { const c = D.people.curves[k]; return c.t.map((t, j) => [D.people.names[k], when(t), number(c.m[j]), number(c.l[j]), number(c.u[j])]); })));
    $("people").querySelector("details").hidden = !selected.length;
    if (selected.length) chart("people", peopleChart);
    else { drawn.delete("people"); $("chart-people").replaceChildren(); }
  }

  function peopleChart() {
    const bands = [], lines = [], marks = [], times = selected.flatMap(k => D.people.curves[k].t), span = Math.max(...times) - Math.min(...times);
    const found = $("show-answers").checked ? selected.map(k => marksOf(k, span / Math.max(20, $("chart-people").clientWidth / 13) || 1)) : [], largest = Math.max(...found.flat().map(m => Math.abs(m.moved)), 1e-9);
    selected.forEach((k, j) => {
      const name = D.people.names[k], c = D.people.curves[k], points = c.t.map((t, i) => [t, c.m[i], c.l[i], c.u[i]]), shown = c.t[0] === c.t[c.t.length - 1] ? points.slice(0, 1) : points;
      bands.push({ kind: "band", points: shown, colour: colour(j), opacity: selected.length > COLOURS ? 0.08 : 0.18 });
      lines.push({ kind: "line", points: shown, colour: colour(j), dash: DASHES[Math.floor(j / COLOURS) % 3], words: (v, at) => [["who", name], ["when", at], ["ability", number(v[1])], [band(), range(v[2], v[3])]] });
      (found[j] || []).forEach(m => marks.push({ kind: "mark", x: m.t, y: m.m, up: m.up, r: 3 + 4.5 * Math.sqrt(Math.abs(m.moved) / largest), colour: colour(j), words: m.words }));
    });
    const y = selected.flatMap(k => [...D.people.curves[k].l, ...D.people.curves[k].u]);
    return { height: 380, label: `Line chart: ability over time of ${selected.map(k => D.people.names[k]).join(", ")}, with bands.`, x: timeAxis(times), y: abilityAxis(y), layers: [...bands, ...lines, ...marks] };
  }

  function matching(text) {
    const wanted = bare(text.trim());
    if (!wanted) return [];
    const place = D.people.folded.map(name => Math.min(...name.split("\n").map(part => part === wanted ? 0 : part.startsWith(wanted) ? 1 : part.includes(wanted) ? 2 : 9)));
    return place.map((p, k) => [p, k]).filter(pair => pair[0] < 9).sort((a, b) => a[0] - b[0]).map(pair => pair[1]);
  }

  function suggest() {
    const hits = $("who").value.trim() ? matching($("who").value) : [];
    $("matches").replaceChildren(...hits.slice(0, 8).map(k => {
      const button = el("button", { type: "button" }, `+ ${D.people.names[k]}`);
      button.addEventListener("click", () => add(k));
      return el("li", {}, button);
    }));
    $("found").textContent = hits.length > 8 ? `${whole(hits.length)} people are called so; the first 8 are here.` : "";
  }

  function find(text) {
    const hits = matching(text);
    if (hits.length) add(hits[0]);
    else if (text.trim()) $("found").textContent = `Nobody here is called “${text.trim()}”.`;
  }

  // --- items

  function drawItemTable() {
    const columns = D.items.columns, heads = Object.keys(columns).filter(name => columns[name].some(v => v !== null));
    const wanted = printing ? "" : bare($("item-filter").value.trim());
    let rows = sortedRows(columns, columns.item.map((_, k) => k).filter(k => !wanted || folded(columns.item[k]).includes(wanted)), order);
    const total = rows.length;
    rows = printing ? rows : rows.slice(0, MOST_ROWS);
    const cell = (k, name) => typeof columns[name][k] === "string" ? (name === "flag" && columns.flag[k] ? el("span", { class: "flag" }, columns.flag[k]) : columns[name][k]) : number(columns[name][k], name === "n" ? 0 : 2);
    const body = el("tbody", {}, ...rows.map(k => {
      const pick = el("button", { type: "button", "aria-label": `Show item ${columns.item[k]}` }, columns.item[k]);
      pick.addEventListener("click", () => { chosen = k; drawItemTable(); drawItem(); });
      return el("tr", k === chosen ? { class: "chosen" } : {}, ...heads.map((name, j) => j ? el("td", {}, cell(k, name)) : el("th", { scope: "row" }, pick)));
    }));
    const more = total > rows.length ? ` The first ${rows.length} of ${whole(total)} rows; filter or sort to see others.` : "";
    $("table-items").replaceChildren(el("table", {}, el("caption", {}, el("span", {}, el("span", { class: "screen" }, "Press a heading to sort, a name to see the item's curves below."), more)), el("thead", {}, headings(heads, order, columns, by => { order = by; drawItemTable(); })), body));
  }

  function drawItem() {
    const name = D.items.columns.item[chosen], ability = D.items.ability, categories = D.items.categories[chosen], curves = D.items.curves[chosen], amount = D.items.amount[chosen];
    const information = ability.map((x, k) => [x, D.items.information[chosen][k]]), x = { low: ability[0], high: ability[ability.length - 1], title: "ability" };
    $("item-title").textContent = `Item ${name}`;
    $("cap-item").textContent = amount ? "Mean response to the item at each ability." : `Probability of each response to the item at each ability.${D.items.observed[chosen].length ? " Dots: what people of about that ability answered, with two standard errors; the curve should pass among them." : ""}`;
    $("cap-information").replaceChildren(term("Information", "information"), ": at which abilities the item tells people apart.");
    $("table-item").replaceChildren(table(`Curves of ${name}`, ["ability", ...categories, "information"], ability.map((x, k) => [number(x), ...categories.map((_, c) => number(curves[c][k], 3)), number(D.items.information[chosen][k], 3)])));
    const layers = categories.map((category, c) => ({ kind: "line", colour: colour(c), dash: DASHES[Math.floor(c / COLOURS) % 3], points: ability.map((x, k) => [x, curves[c][k]]), words: (v, at) => [["response", category], ["at ability", at], [amount ? "mean response" : "probability", number(v[1])]] }));
    const legend = categories.map((category, c) => ({ name: amount ? category : `response ${category}`, colour: colour(c) })), observed = D.items.observed[chosen];
    for (const [at, share, error, n] of observed) layers.push({ kind: "stroke", x0: at, x1: at, y0: Math.max(0, share - 2 * error), y1: Math.min(1, share + 2 * error), colour: colour(1), width: 1.5 }, { kind: "dot", x: at, y: share, r: 4, reach: 12, colour: colour(1), words: () => [["people of ability about", number(at)], [`answered ${categories[1]}`, `${Math.round(100 * share)} % of ${whole(n)}`]] });
    const y = amount ? { ...reach(curves.flat()), title: "mean response" } : { low: 0, high: 1, title: "probability" };
    chart("item", () => ({ height: 250, label: `Line chart: response curves of item ${name}.`, x, y, layers, legend }));
    const most = Math.max(...information.map(p => p[1]), 1e-6);
    chart("information", () => ({ height: 250, label: `Area chart: information of item ${name} over ability.`, x, y: { low: 0, high: 1.05 * most, title: "information" }, layers: [{ kind: "band", colour: colour(1), points: information.map(p => [p[0], p[1], 0, p[1]]) }, { kind: "line", colour: colour(1), points: information, words: (v, at) => [["at ability", at], ["information", number(v[1])]] }] }));
  }

  // --- for experts

  function wrightChart() {
    const bars = D.wright.bars, most = what => Math.max(...bars.filter(b => b.what === what).map(b => b.count), 1), top = { people: most("people"), items: most("items") };
    const ticks = ["people", "items"].flatMap(what => [...new Set([Math.floor(top[what] / 2), top[what]])].filter(n => n).map(n => ({ what, n })));
    const layers = bars.filter(b => b.count).map(b => ({ kind: "bar", x0: b.from, x1: b.to, y0: 0, y1: (b.what === "people" ? 1 : -1) * b.count / top[b.what], colour: colour(b.what === "people" ? 0 : 1), words: () => [[b.what, whole(b.count)], ["ability", range(b.from, b.to)]] }));
    return { height: 300, label: "Two histograms on one scale: abilities of people above, locations of items below.", x: { low: bars[0].from, high: bars[bars.length - 1].to, title: "ability, and location of items" }, y: { low: -1.05, high: 1.05, title: null, ticks: [{ at: 0, text: "0", strong: true }, ...ticks.map(t => ({ at: (t.what === "people" ? 1 : -1) * t.n / top[t.what], text: whole(t.n) }))] }, layers, legend: [{ name: "people", colour: colour(0), shape: "bars" }, { name: "items", colour: colour(1), shape: "bars" }] };
  }

  function priorsChart() {
    const rows = [...D.priors].sort((a, b) => b.weight - a.weight), n = rows.length, most = Math.max(...rows.map(p => p.weight));
    const layers = rows.map((p, k) => ({ kind: "bar", x0: 0, x1: p.weight, y0: n - k - 0.85, y1: n - k - 0.15, anywhere: false, colour: colour(0), words: () => [["prior", p.whole], ["share", `${(100 * p.weight).toFixed(1)} %`]] }));
    const high = Math.min(1, 1.1 * most), step = high > 0.5 ? 0.25 : high > 0.2 ? 0.1 : 0.05, ticks = [];
    for (let v = 0; v <= high + 1e-9; v += step) ticks.push({ at: v, text: `${Math.round(100 * v)} %` });
    return { height: 56 + 28 * n, label: "Bar chart: shares of the priors in the population.", x: { low: 0, high, title: "share of the population", ticks }, y: { low: 0, high: n, title: null, ticks: rows.map((p, k) => ({ at: n - k - 0.5, text: p.prior.length > 28 ? `${p.prior.slice(0, 27)}…` : p.prior })) }, layers };
  }

  function calibrationChart() {
    const rows = D.calibration, kinds = [...new Set(rows.map(r => r.abilities))], x = reach(rows.map(r => r.predicted)), y = reach(rows.flatMap(r => [r.observed - 2 * r.se, r.observed + 2 * r.se]));
    const layers = [{ kind: "stroke", x0: Math.max(x.low, y.low), y0: Math.max(x.low, y.low), x1: Math.min(x.high, y.high), y1: Math.min(x.high, y.high), colour: "var(--grey)", width: 1, dash: "4 4" }];
    for (const r of rows) {
      const ink = colour(kinds.indexOf(r.abilities));
      layers.push({ kind: "stroke", x0: r.predicted, x1: r.predicted, y0: r.observed - 2 * r.se, y1: r.observed + 2 * r.se, colour: ink }, { kind: "dot", x: r.predicted, y: r.observed, colour: ink, reach: 14, words: () => [["abilities", r.abilities], ["predicted", number(r.predicted, 3)], ["observed", number(r.observed, 3)], ["answers", whole(r.n)]] });
    }
    return { height: 290, label: "Scatter plot: observed against predicted mean responses.", x: { ...x, title: "predicted mean response" }, y: { ...y, title: "observed" }, layers, legend: kinds.map((k, j) => ({ name: `${k} abilities`, colour: colour(j) })) };
  }

  function traceChart() {
    const rows = D.trace, points = rows.map(r => [r.iteration, r.change]), low = Math.min(...points.map(p => p[1])), high = Math.max(...points.map(p => p[1]));
    const dots = rows.map(r => ({ kind: "dot", x: r.iteration, y: r.change, r: 3, reach: 14, colour: colour(0), words: () => [["iteration", r.iteration], ["stage", r.stage], ["change", `${r.change.toPrecision(2)} se`], ["log evidence", fixed(r.log_evidence, 1)]] }));
    return { height: 290, label: "Line chart: change of the items at each iteration.", x: { low: rows[0].iteration, high: Math.max(rows[rows.length - 1].iteration, rows[0].iteration + 1), title: "iteration", whole: true }, y: { low: 10 ** Math.floor(Math.log10(low)), high: 10 ** Math.ceil(Math.log10(high) + 1e-6), log: true, title: "change, in standard errors" }, layers: [{ kind: "line", points, colour: colour(0), width: 1.5 }, ...dots] };
  }

  function experts() {
    const f = D.facts, last = D.trace[D.trace.length - 1], items = D.wright.items.filter(v => v !== null);
    const quantilesOf = values => { const s = [...values].sort((a, b) => a - b); return [0, .1, .25, .5, .75, .9, 1].map(q => number(s[Math.round(q * (s.length - 1))])); };
    list("words", D.words);
    list("health", D.health);
    list("method-words", D.method);
    $("cap-trace").textContent = `The change of the items at each iteration. ${f.converged ? "The fit converged" : "The fit did NOT converge"} after ${f.iterations} iterations${last ? `; the log evidence was ${fixed(last.log_evidence, 1)}` : ""}.`;
    $("table-wright").replaceChildren(table("Quantiles", ["", "lowest", "10 %", "25 %", "middle", "75 %", "90 %", "highest"], [["people", ...quantilesOf(D.wright.people)], ["items", ...quantilesOf(items)]]));
    $("table-priors").replaceChildren(table("Priors", ["prior", "share"], D.priors.map(p => [p.whole, `${(100 * p.weight).toFixed(1)} %`])));
    $("table-quality").replaceChildren(
      table("Calibration", ["abilities", "predicted", "observed", "± (1 se)", "answers"], D.calibration.map(r => [r.abilities, number(r.predicted, 3), number(r.observed, 3), number(r.se, 3), whole(r.n)])),
      table("Convergence", ["iteration", "stage", "change", "log evidence"], D.trace.map(r => [r.iteration, r.stage, r.change.toPrecision(2), fixed(r.log_evidence, 1)])));
    chart("wright", wrightChart);
    chart("priors", priorsChart);
    chart("calibration", calibrationChart);
    if (D.trace.length) chart("trace", traceChart);
  }

  function notes() {
    const f = D.facts;
    $("changes-note").replaceChildren(...phrase(D.changes.note));
    $("items-note").replaceChildren(...phrase(D.items.note));
    $("people-note").textContent = f.shown < f.people ? `A page cannot hold everybody: ${whole(f.shown)} of ${whole(f.people)} people are here, spread evenly over how much they answered. The tables beside this page have all.` : `Up to ${MOST_SHOWN} people are drawn together.`;
    $("term-list").replaceChildren(...Object.entries(D.terms).flatMap(([key, [name, text]]) => [el("dt", { id: `term-${key}` }, name), el("dd", {}, text)]));
    list("cite-words", D.cite.words);
    $("bibtex").textContent = D.cite.bibtex;
  }

  // Paper has no scroll bars, no headings to press and no place for what does not fit: every row is laid out, and charts take its width.
  function forPaper(on) {
    if (printing === on) return;
    printing = on;
    document.documentElement.classList.toggle("paper", on);
    drawChanges();
    drawItemTable();
    again();
  }

  function start() {
    D = JSON.parse($("data").textContent);
    D.people.folded = D.people.names.map(folded);
    summary();
    notes();
    pickFirst();
    $("search").addEventListener("submit", event => { event.preventDefault(); find($("who").value); });
    $("who").addEventListener("input", suggest);
    $("clear").addEventListener("click", () => { selected = []; $("found").textContent = ""; drawPeople(); });
    $("show-answers").addEventListener("change", drawPeople);
    $("item-filter").addEventListener("input", drawItemTable);
    $("change-filter").addEventListener("input", drawChanges);
    verdicts();
    drawChanges();
    drawItemTable();
    drawPeople();
    drawItem();
    experts();
    window.addEventListener("beforeprint", () => forPaper(true));
    window.addEventListener("afterprint", () => forPaper(false));
    document.addEventListener("keydown", event => { if (event.key === "Escape") tip(null); });
    document.addEventListener("scroll", () => tip(null), { passive: true });
    let resized, width = window.innerWidth;
    window.addEventListener("resize", () => { if (window.innerWidth === width) return; width = window.innerWidth; clearTimeout(resized); resized = setTimeout(again, 150); });
    if (location.hash === "#print") forPaper(true);
    document.documentElement.dataset.ready = "yes";
  }

  start();
})();
