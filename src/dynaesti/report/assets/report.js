"use strict";
(() => {
  let D, printing = false, drawn = new Map(), selected = [], order = { column: null, down: false }, changeOrder = { column: "change", down: true }, chosen = 0;
  const $ = id => document.getElementById(id);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // Every text from the data is set as textContent: a name is never markup.
  function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    for (const child of children) node.append(child instanceof Node ? child : document.createTextNode(child === null || child === undefined ? "" : String(child)));
    return node;
  }
  const list = (id, texts) => $(id).replaceChildren(...texts.map(text => el("li", {}, text)));
  const number = (x, digits = 2) => x === null || x === undefined ? "" : typeof x === "number" ? (Number.isInteger(x) && digits === 0 ? x.toLocaleString("en") : x.toFixed(digits)) : String(x);
  const when = t => D.facts.stamps ? new Date(t).toISOString().slice(0, 16).replace("T", " ") : String(t);

  function table(caption, heads, rows) {
    return el("table", {}, el("caption", {}, caption),
      el("thead", {}, el("tr", {}, ...heads.map(head => el("th", { scope: "col" }, head)))),
      el("tbody", {}, ...rows.map(row => el("tr", {}, ...row.map((cell, k) => el(k ? "td" : "th", k ? {} : { scope: "row" }, cell))))));
  }

  function config() {
    const ink = dark.matches ? "#e7eaee" : "#1b1f24", soft = dark.matches ? "#a4adb8" : "#59616b", line = dark.matches ? "#363f49" : "#e3e7ec";
    return {
      background: "transparent", font: "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", view: { stroke: null },
      axis: { labelColor: soft, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500 },
      legend: { labelColor: ink, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500, symbolOpacity: 1, symbolBaseFillColor: soft, symbolBaseStrokeColor: soft },
    };
  }

  // Tooltips are ours: names as text, and under the pointer what is drawn there, also where Vega-Lite hands over the nearest point.
  function tooltip(words) {
    return (_, event, item, value) => {
      const box = $("tip"), datum = item && item.datum ? item.datum.datum || item.datum : null;
      const shown = value === null || value === undefined || value === "" ? null : (words && datum && words(datum)) || value;
      box.hidden = shown === null;
      if (shown === null) return;
      box.replaceChildren(...Object.entries(shown).map(([key, text]) => el("div", {}, el("span", {}, key), " ", el("b", {}, text))));
      const edge = box.getBoundingClientRect();
      box.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - edge.width - 8))}px`;
      box.style.top = `${Math.max(4, Math.min(event.clientY + 14, window.innerHeight - edge.height - 8))}px`;
    };
  }

  async function draw(name, data, label, words) {
    const spec = JSON.parse(JSON.stringify(D.charts[name]));
    delete spec.config;
    if (spec.layer) spec.layer = spec.layer.filter(part => !(part.data && data[part.data.name] && !data[part.data.name].length));  // empty ones have no extent
    const sized = spec.vconcat ? spec.vconcat : [];
    const width = Math.max(240, $("chart-" + name).clientWidth - 90);
    for (const part of sized) part.width = width;
    spec.datasets = { ...(spec.datasets || {}), ...data };
    const options = { actions: false, renderer: "canvas", config: config(), tooltip: tooltip(words), loader: { load: () => Promise.reject(new Error("offline")) } };
    const old = drawn.get(name);
    if (old) old.view.finalize();
    const target = $("chart-" + name);
    const result = await window.vegaEmbed(target, spec, options);
    target.setAttribute("role", "img");
    target.setAttribute("aria-label", label);
    drawn.set(name, { view: result.view, again: () => draw(name, data, label, words) });
  }

  // --- people

  function pickFirst() {
    const n = D.people.n.map((n, k) => [n, k]).sort((a, b) => b[0] - a[0]);
    const change = k => { const m = D.people.curves[k].m; return m[m.length - 1] - m[0]; };
    const busy = n.slice(0, Math.max(5, Math.ceil(n.length / 3))).map(pair => pair[1]).sort((a, b) => change(b) - change(a));
    selected = [...new Set([busy[0], busy[Math.floor(busy.length / 2)], busy[busy.length - 1]])].filter(k => k !== undefined);
  }

  function interpolate(curve, t) {
    const { t: x, m } = curve;
    for (let k = 1; k < x.length; k++) if (t <= x[k]) return x[k] === x[k - 1] ? m[k] : m[k - 1] + (m[k] - m[k - 1]) * (t - x[k - 1]) / (x[k] - x[k - 1]);
    return m[m.length - 1];
  }

  function drawPeople() {
    const curves = [], singles = [], answers = [], withAnswers = $("show-answers").checked;
    for (const k of selected) {
      const name = D.people.names[k], c = D.people.curves[k], a = D.people.answers[k];
      c.t.forEach((t, j) => curves.push({ name, t, m: c.m[j], l: c.l[j], u: c.u[j], band: `${number(c.l[j])} to ${number(c.u[j])}` }));
      if (c.t[0] === c.t[c.t.length - 1]) singles.push({ name, t: c.t[0], l: c.l[0], u: c.u[0] });  // one instant: a band has no width
      if (withAnswers) a.t.forEach((t, j) => answers.push({ name, t, m: interpolate(c, t), item: D.items.labels[a.i[j]], y: a.y[j], d: a.d[j], moved: a.d[j] >= 0 ? "up" : "down", size: Math.abs(a.d[j]) }));
    }
    $("chips").replaceChildren(...selected.map(k => {
      const button = el("button", { type: "button", "aria-label": `Remove ${D.people.names[k]}` }, `${D.people.names[k]} ×`);
      button.addEventListener("click", () => { selected = selected.filter(j => j !== k); drawPeople(); });
      return el("li", {}, button);
    }));
    const names = selected.map(k => D.people.names[k]).join(", ");
    $("cap-people").textContent = selected.length ? `Ability of ${names}, each with a ${Math.round(100 * D.facts.level)} % band. Triangles are answers; the larger, the more they moved the curve.` : "Nobody is picked; find a person above.";
    const rows = curves.map(c => [c.name, when(c.t), number(c.m), number(c.l), number(c.u)]);
    $("table-people").replaceChildren(table("Ability at times", ["who", D.facts.time_title, "ability", "band from", "to"], rows));
    if (!selected.length) {  // an empty chart would only complain of having no extent
      const old = drawn.get("people");
      if (old) { old.view.finalize(); drawn.delete("people"); }
      $("chart-people").replaceChildren();
      return undefined;
    }
    const words = d => d.band === undefined ? null : { who: d.name, when: when(d.t), ability: number(d.m), [`${Math.round(100 * D.facts.level)} % band`]: d.band };
    return draw("people", { curves, singles, answers }, `Line chart: ability over time of ${names || "nobody"}, with bands.`, words);
  }

  function find(text) {
    const wanted = text.trim().toLocaleLowerCase();
    if (!wanted) return;
    const names = D.people.names.map(name => name.toLocaleLowerCase());
    let hit = names.indexOf(wanted);
    if (hit < 0) hit = names.findIndex(name => name.startsWith(wanted));
    if (hit < 0) hit = names.findIndex(name => name.includes(wanted));
    if (hit < 0) { $("found").textContent = `Nobody here is called “${text}”.`; return; }
    $("found").textContent = `${D.people.names[hit]}: ${D.people.n[hit]} answers.`;
    $("who").value = "";
    if (!selected.includes(hit)) selected = [...selected, hit].slice(-8);
    return drawPeople();
  }

  // --- who rose, who fell

  function sortedRows(columns, rows, by) {
    if (!by.column) return rows;
    const values = columns[by.column], sign = by.down ? -1 : 1;
    return rows.sort((a, b) => values[a] === null ? 1 : values[b] === null ? -1 : sign * (typeof values[a] === "number" ? values[a] - values[b] : values[a].localeCompare(values[b], "en", { numeric: true })));
  }

  function headings(names, shown, by, columns, again) {
    return el("tr", {}, ...names.map((name, k) => {
      const button = el("button", { type: "button" }, shown[k], by.column === name ? (by.down ? " ↓" : " ↑") : "");
      button.addEventListener("click", () => again({ column: name, down: by.column === name ? !by.down : typeof columns[name][0] === "number" }));
      return el("th", { scope: "col", "aria-sort": by.column === name ? (by.down ? "descending" : "ascending") : "none" }, button);
    }));
  }

  const percentage = p => p > 0.995 ? "> 99 %" : p < 0.005 ? "< 1 %" : `${(100 * p).toFixed(0)} %`;

  function drawChanges() {
    const columns = D.changes.columns, heads = Object.keys(columns);
    if (!heads.length) { $("table-changes").replaceChildren(el("p", { class: "note" }, "Everybody answered at one time only, so no change can be seen.")); return; }
    const filter = $("change-filter").value.trim().toLocaleLowerCase();
    const named = k => [columns.who[k], columns.group ? columns.group[k] : ""].join(" ").toLocaleLowerCase();
    let rows = sortedRows(columns, columns.who.map((_, k) => k).filter(k => !filter || named(k).includes(filter)), changeOrder);
    const total = rows.length;
    rows = printing ? rows : rows.slice(0, 400);
    const cells = (k, name) => name === "group" ? columns.group[k] : name === "probability of a rise" ? percentage(columns[name][k]) : (columns[name][k] >= 0 && name !== "±" ? "+" : "") + number(columns[name][k]).replace("-", "−");
    const body = el("tbody", {}, ...rows.map(k => {
      const pick = el("button", { type: "button", "aria-label": `Show the curve of ${columns.who[k]}` }, columns.who[k]);
      pick.addEventListener("click", () => { const person = D.changes.shown[k]; if (!selected.includes(person)) selected = [...selected, person].slice(-8); drawPeople(); $("people").scrollIntoView(); });
      return el("tr", {}, ...heads.map((name, j) => j ? el("td", {}, cells(k, name)) : el("th", { scope: "row" }, pick)));
    }));
    const more = total > rows.length ? ` The first ${rows.length} of ${total} rows; filter or sort to see others.` : "";
    $("table-changes").replaceChildren(el("table", {}, el("caption", {}, `Change from the first to the last answer; press a heading to sort, a name to see the curve.${more}`), el("thead", {}, headings(heads, heads, changeOrder, columns, by => { changeOrder = by; drawChanges(); })), body));
  }

  // --- items

  function drawItemTable() {
    const columns = D.items.columns, heads = Object.keys(columns).filter(name => columns[name].some(v => v !== null));
    const filter = $("item-filter").value.trim().toLocaleLowerCase();
    let rows = columns.item.map((_, k) => k).filter(k => !filter || columns.item[k].toLocaleLowerCase().includes(filter));
    rows = sortedRows(columns, rows, order);
    const total = rows.length;
    rows = printing ? rows : rows.slice(0, 400);
    const head = headings(heads, heads.map(name => name.startsWith("se_") ? `± ${name.slice(3)}` : name), order, columns, by => { order = by; drawItemTable(); });
    const body = el("tbody", {}, ...rows.map(k => {
      const pick = el("button", { type: "button", "aria-label": `Show item ${columns.item[k]}` }, columns.item[k]);
      pick.addEventListener("click", () => { chosen = k; drawItemTable(); drawItem(); });
      return el("tr", { "aria-selected": k === chosen ? "true" : "false" }, ...heads.map((name, j) => j ? el("td", {}, typeof columns[name][k] === "string" ? columns[name][k] : number(columns[name][k], name === "n" ? 0 : 2)) : el("th", { scope: "row" }, pick)));
    }));
    const more = total > rows.length ? ` The first ${rows.length} of ${total} rows; filter or sort to see others.` : "";
    $("table-items").replaceChildren(el("table", {}, el("caption", {}, `Items; press a heading to sort, a name to see its response function.${more}`), el("thead", {}, head), body));
  }

  function drawItem() {
    const name = D.items.columns.item[chosen], ability = D.items.ability, categories = D.items.categories[chosen];
    $("item-title").textContent = `Item ${name}`;
    const functions = categories.flatMap((category, c) => ability.map((x, k) => ({ category, ability: x, value: D.items.curves[chosen][c][k] })));
    const information = ability.map((x, k) => ({ ability: x, value: D.items.information[chosen][k] }));
    $("cap-information").textContent = `Information of item ${name} over ability: where it tells people apart.`;
    $("table-item").replaceChildren(table(`Response function of ${name}`, ["ability", ...categories, "information"], ability.map((x, k) => [number(x), ...categories.map((_, c) => number(D.items.curves[chosen][c][k], 3)), number(D.items.information[chosen][k], 3)])));
    return Promise.all([draw("item", { functions }, `Line chart: response function of item ${name}.`), draw("information", { information }, `Area chart: information of item ${name} over ability.`)]);
  }

  // --- the rest

  function words() {
    const f = D.facts;
    $("title").textContent = document.title;
    $("lead").textContent = D.words[0];
    const tiles = [["answers", f.answers.toLocaleString("en")], ["people", f.people.toLocaleString("en")], ["items", f.items.toLocaleString("en")], ["reliability", number(f.reliability)], ["iterations to convergence", f.converged ? String(f.iterations) : "not converged"]];
    if (f.gain !== null) tiles.push(["log loss against constant abilities (less is better)", (f.gain >= 0 ? "−" : "+") + Math.abs(f.gain).toFixed(4)]);
    $("tiles").replaceChildren(...tiles.map(([name, value]) => el("div", { class: "tile" }, el("b", {}, value), el("span", {}, name))));
    list("words", D.words.slice(1));
    list("cohort-words", D.cohort_words);
    const percent = Math.round(100 * f.level);
    $("cap-cohort").textContent = f.has_cohort
      ? `Mean ability of ${f.groups.length ? "each group" : "the cohort"} with its ${percent} % band, and in grey the range of the middle 80 % of people between their first and last answer (where there are at least five).`
      : "Median ability, and the range of the middle 80 % of people, among those between their first and last answer (where there are at least five).";
    $("changes-note").textContent = `${D.changes.shown.length.toLocaleString("en")} people answered at more than one time. ± is one standard deviation of what is known of a change. Part of it a person shares with the cohort, the rest is beyond it; press that heading to sort by it. people.csv has everybody.`;
    list("cautions", D.cautions);
    list("health", D.health);
    list("method-words", D.method);
    $("people-note").textContent = f.shown < f.people ? `A page cannot hold everybody: ${f.shown.toLocaleString("en")} of ${f.people.toLocaleString("en")} people are here, spread evenly over how much they answered. The tables beside this page have all.` : "";
    $("items-note").textContent = D.items.columns.item.length < D.items.total ? `The ${D.items.columns.item.length.toLocaleString("en")} most answered of ${D.items.total.toLocaleString("en")} items are here; items.csv has all.` : "";
    $("names").replaceChildren(...D.people.names.slice(0, 3000).map(name => el("option", { value: name })));
    const last = D.trace[D.trace.length - 1];
    $("cap-trace").textContent = `Convergence: the change of the items at each iteration, in standard errors. ${f.converged ? "The fit converged" : "The fit did NOT converge"} after ${f.iterations} iterations${last ? `; the log evidence was ${last.log_evidence.toLocaleString("en")}` : ""}.`;
    $("scores").textContent = D.words.find(text => text.includes("log loss")) || "";
  }

  function staticCharts() {
    const c = D.quantiles, quantiles = c.t.map((t, k) => ({ t, low: c.low[k], mid: c.mid[k], high: c.high[k], n: c.n[k] })).filter(row => row.mid !== null);
    const means = D.means.map(row => ({ ...row, band: `${number(row.l)} to ${number(row.u)}` })), percent = Math.round(100 * D.facts.level);
    $("table-cohort").replaceChildren(
      ...(means.length ? [table("Mean of the cohort", ["who", D.facts.time_title, "mean", `${percent} % band from`, "to"], means.map(r => [r.group, when(r.t), number(r.m), number(r.l), number(r.u)]))] : []),
      table("Mean abilities of people", [D.facts.time_title, "10 %", "median", "90 %", "people"], quantiles.map(r => [when(r.t), number(r.low), number(r.mid), number(r.high), number(r.n, 0)])));
    const said = d => d.band === undefined ? null : { ...(D.facts.groups.length ? { group: d.group } : {}), when: when(d.t), mean: number(d.m), [`${percent} % band`]: d.band };
    const items = D.wright.items.filter(v => v !== null);
    const quantilesOf = values => { const s = [...values].sort((a, b) => a - b); return [0, .1, .25, .5, .75, .9, 1].map(q => number(s[Math.round(q * (s.length - 1))])); };
    $("table-wright").replaceChildren(table("Quantiles", ["", "lowest", "10 %", "25 %", "middle", "75 %", "90 %", "highest"], [["people", ...quantilesOf(D.wright.people)], ["items", ...quantilesOf(items)]]));
    $("table-priors").replaceChildren(table("Priors", ["prior", "share"], D.priors.map(p => [p.whole, (100 * p.weight).toFixed(1) + " %"])));
    const calibration = D.calibration.map(row => ({ ...row, lower: row.observed - 2 * row.se, upper: row.observed + 2 * row.se }));
    $("table-quality").replaceChildren(
      table("Calibration", ["abilities", "predicted", "observed", "± (1 se)", "answers"], D.calibration.map(r => [r.abilities, number(r.predicted, 3), number(r.observed, 3), number(r.se, 3), number(r.n, 0)])),
      table("Convergence", ["iteration", "stage", "change", "log evidence"], D.trace.map(r => [r.iteration, r.stage, r.change.toPrecision(2), number(r.log_evidence, 1)])));
    return Promise.all([
      quantiles.length || means.length ? draw("cohort", { quantiles, means }, "Line chart: mean ability of the cohort over time with its band, and the range of the middle 80 percent of people.", said) : $("chart-cohort").replaceChildren(el("p", { class: "note" }, "There are never five people at once between their first and last answer, so there is no cohort to show.")),
      draw("wright", { wright: D.wright.bars }, "Two histograms on one scale: abilities of people above, locations of items below."),
      draw("priors", { priors: D.priors }, "Bar chart: shares of the priors in the population."),
      draw("calibration", { calibration }, "Scatter plot: observed against predicted mean responses."),
      draw("trace", { trace: D.trace }, "Line chart: change of the items at each iteration."),
    ]);
  }

  async function start() {
    D = JSON.parse($("data").textContent);
    words();
    pickFirst();
    $("search").addEventListener("submit", event => { event.preventDefault(); find($("who").value); });
    $("clear").addEventListener("click", () => { selected = []; $("found").textContent = ""; drawPeople(); });
    $("show-answers").addEventListener("change", drawPeople);
    $("item-filter").addEventListener("input", drawItemTable);
    $("change-filter").addEventListener("input", drawChanges);
    drawChanges();
    drawItemTable();
    await drawPeople();
    await drawItem();
    await staticCharts();
    dark.addEventListener("change", () => drawn.forEach(chart => chart.again()));
    // paper has no scroll bars and no headings to press: every row is laid out before it is printed
    window.addEventListener("beforeprint", () => { printing = true; drawChanges(); drawItemTable(); });
    window.addEventListener("afterprint", () => { printing = false; drawChanges(); drawItemTable(); });
    let resized;
    window.addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => { const chart = drawn.get("wright"); if (chart) chart.again(); }, 200); });
    document.documentElement.dataset.ready = "yes";
  }

  window.addEventListener("vega-ready", () => { if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start(); });
})();
