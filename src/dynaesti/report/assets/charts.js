"use strict";
// Charts as SVG: what is drawn follows the colours of the page, prints sharply, and its tooltips are read off the lines themselves.
const Charts = (() => {
  const NS = "http://www.w3.org/2000/svg", MINUTE = 60e3, HOUR = 60 * MINUTE, DAY = 24 * HOUR, MONTH = 30.4 * DAY, YEAR = 365.25 * DAY;
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const minus = text => text.replace(/-(?=\d)/g, "−");
  const fixed = (x, digits) => { const text = x.toFixed(digits); return minus(+text === 0 ? text.replace("-", "") : text); };

  function make(tag, attributes = {}, style = {}, ...children) {
    const node = document.createElementNS(NS, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    for (const [key, value] of Object.entries(style)) node.style.setProperty(key, value);
    node.append(...children);
    return node;
  }

  // --- ticks

  function numberTicks(low, high, most, whole) {
    const rough = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
    let step = [1, 2, 5, 10].map(k => k * power).find(s => s >= rough * 0.999);
    if (whole) step = Math.max(1, Math.round(step));
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push({ at: k * step, text: fixed(k * step, digits) });
    return ticks;
  }

  function logTicks(low, high) {
    const ticks = [];
    for (let p = Math.ceil(Math.log10(low) - 1e-9); p <= Math.log10(high) + 1e-9; p++) ticks.push({ at: 10 ** p, text: p >= 0 ? String(10 ** p) : (10 ** p).toFixed(-p) });
    return ticks;
  }

  const day = d => `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]}`;
  const clock = (d, seconds) => d.toISOString().slice(11, seconds ? 19 : 16);

  function byDuration(low, high, step) {
    const origin = step > DAY ? -3 * DAY : 0, ticks = [];  // weeks begin on Mondays
    for (let t = origin + Math.ceil((low - origin) / step) * step; t <= high; t += step) {
      const d = new Date(t), midnight = t % DAY === 0, year = ` ${d.getUTCFullYear()}`;
      ticks.push({ at: t, text: step >= DAY ? day(d) + (ticks.length ? "" : year) : midnight || !ticks.length ? day(d) + (midnight ? "" : " " + clock(d, step < MINUTE)) : clock(d, step < MINUTE) });
    }
    return ticks;
  }

  function byMonth(low, high, step) {
    const ticks = [], first = new Date(low);
    for (let m = Math.ceil((12 * first.getUTCFullYear() + first.getUTCMonth()) / step) * step; ; m += step) {
      const t = new Date(0);
      t.setUTCFullYear(Math.floor(m / 12), ((m % 12) + 12) % 12, 1);
      if (+t > high) return ticks;
      if (+t >= low) ticks.push({ at: +t, text: step >= 12 ? String(t.getUTCFullYear()) : MONTHS[t.getUTCMonth()] + (t.getUTCMonth() && ticks.length ? "" : ` ${t.getUTCFullYear()}`) });
    }
  }

  function dateTicks(low, high, most) {
    const wanted = (high - low) / Math.max(1, most);
    const spans = [1e3, 5e3, 15e3, 30e3, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
    const step = spans.find(s => s >= wanted);
    if (step) return byDuration(low, high, step);
    let months = [1, 2, 3, 6].find(m => m * MONTH >= wanted);
    for (let p = 12; !months; p *= 10) months = [1, 2, 5].map(k => k * p).find(m => m * MONTH >= wanted);
    return byMonth(low, high, months);
  }

  // A time as exactly as a pixel of the chart shows it.
  function timeText(t, dates, pixel) {
    if (!dates) return fixed(t, Math.min(9, Math.max(0, Math.ceil(-Math.log10(pixel)))));
    const d = new Date(t), date = `${day(d)} ${d.getUTCFullYear()}`;
    return pixel > 6 * HOUR ? date : `${date}, ${clock(d, pixel < 30e3)}`;
  }

  // --- drawing

  function scale(axis, from, to) {
    const f = axis.log ? Math.log : x => x, a = f(axis.low), b = f(axis.high);
    const place = x => from + (to - from) * (f(x) - a) / (b - a || 1);
    place.invert = p => { const v = a + (b - a) * (p - from) / (to - from); return axis.log ? Math.exp(v) : v; };
    return place;
  }

  function ticksOf(axis, length, each) {
    if (axis.ticks) return axis.ticks;
    if (axis.log) return logTicks(axis.low, axis.high);
    if (axis.high === axis.low) return [{ at: axis.low, text: axis.dates ? timeText(axis.low, true, MINUTE) : String(axis.low) }];
    const most = Math.max(2, Math.floor(length / each));
    return axis.dates ? dateTicks(axis.low, axis.high, most) : numberTicks(axis.low, axis.high, most, axis.whole);
  }

  // Labels of the horizontal axis: moved inwards at the edges, and left out where one would touch the last.
  function drawHorizontal(svg, axis, x, bottom, width) {
    let taken = -Infinity;
    for (const tick of ticksOf(axis, width, axis.dates ? 84 : 64)) {
      const text = make("text", { class: "tick", y: bottom + 18, "text-anchor": "middle" }, {}, tick.text);
      svg.append(make("line", { class: "tickline", x1: x(tick.at), x2: x(tick.at), y1: bottom, y2: bottom + 5 }), text);
      const half = text.getComputedTextLength() / 2, at = Math.min(Math.max(x(tick.at), half + 1), width - half - 1);
      text.setAttribute("x", at);
      if (at - half < taken + 8) text.remove();
      else taken = at + half;
    }
    svg.append(make("line", { class: "axis", x1: x(axis.low), x2: x(axis.high), y1: bottom, y2: bottom }));
    if (axis.title) svg.append(make("text", { class: "title", x: (x(axis.low) + x(axis.high)) / 2, y: bottom + 38, "text-anchor": "middle" }, {}, axis.title));
  }

  function drawVertical(svg, ticks, y, left, right) {
    for (const tick of ticks) svg.append(make("line", { class: tick.strong ? "axis" : "grid", x1: left, x2: right, y1: y(tick.at), y2: y(tick.at) }), make("text", { class: "tick", x: left - 7, y: y(tick.at) + 4, "text-anchor": "end" }, {}, tick.text));
  }

  const path = points => points.map(([a, b], k) => `${k ? "L" : "M"}${a.toFixed(1)},${b.toFixed(1)}`).join("");
  const triangle = (a, b, r, up) => path([[a - r, b + (up ? r : -r) * 0.8], [a + r, b + (up ? r : -r) * 0.8], [a, b - (up ? r : -r) * 0.8]]) + "Z";

  const SHAPES = {
    band: (p, x, y) => p.points.length > 1
      ? make("path", { d: path([...p.points.map(q => [x(q[0]), y(q[2])]), ...p.points.map(q => [x(q[0]), y(q[3])]).reverse()]) + "Z" }, { fill: p.colour, opacity: p.opacity || 0.2 })
      : make("path", { d: path([[x(p.points[0][0]), y(p.points[0][2])], [x(p.points[0][0]), y(p.points[0][3])]]) }, { stroke: p.colour, "stroke-width": 5, opacity: 0.35 }),
    line: (p, x, y) => p.points.length > 1
      ? make("path", { d: path(p.points.map(q => [x(q[0]), y(q[1])])) }, { fill: "none", stroke: p.colour, "stroke-width": p.width || 2.4, "stroke-dasharray": p.dash || "none", "stroke-linejoin": "round", opacity: p.opacity || 1 })
      : make("circle", { cx: x(p.points[0][0]), cy: y(p.points[0][1]), r: 4 }, { fill: p.colour }),
    bar: (p, x, y) => make("rect", { x: x(p.x0) + 0.5, width: Math.max(0.5, x(p.x1) - x(p.x0) - 1), y: Math.min(y(p.y0), y(p.y1)), height: Math.abs(y(p.y1) - y(p.y0)) }, { fill: p.colour }),
    stroke: (p, x, y) => make("line", { x1: x(p.x0), y1: y(p.y0), x2: x(p.x1), y2: y(p.y1) }, { stroke: p.colour, "stroke-width": p.width || 2, "stroke-dasharray": p.dash || "none" }),
    dot: (p, x, y) => make("circle", { cx: x(p.x), cy: y(p.y), r: p.r || 4 }, { fill: p.colour }),
    mark: (p, x, y) => make("path", { d: triangle(x(p.x), y(p.y) + (p.up ? -9 : 9), p.r, p.up) }, { fill: p.colour, opacity: 0.85 }),  // up above the line, down below it
  };

  function draw(target, spec) {
    target.replaceChildren();
    const width = Math.max(220, target.clientWidth || 640), height = spec.height || 300, top = spec.y.title ? 26 : 10, bottom = height - (spec.x.title ? 46 : 26);
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": spec.label });
    target.append(svg);
    const ticks = ticksOf(spec.y, bottom - top, 40), y = scale(spec.y, bottom, top);
    const left = 12 + Math.max(...ticks.map(t => widthOf(svg, t.text)), 8), right = width - 10, x = scale(spec.x, left, right);
    drawVertical(svg, ticks, y, left, right);
    if (spec.y.title) svg.append(make("text", { class: "title", x: 2, y: 13 }, {}, spec.y.title));
    drawHorizontal(svg, spec.x, x, bottom, width);
    for (const part of spec.layers) svg.append(SHAPES[part.kind](part, x, y));
    if (spec.legend) target.append(legend(spec.legend));
    const dot = make("circle", { r: 5, class: "hover" }, { display: "none" });
    svg.append(dot);
    follow(svg, spec, { x, y, left, right, top, bottom, dot, width, pixel: Math.abs(x.invert(left + 1) - x.invert(left)) });
  }

  function widthOf(svg, text) {
    const probe = make("text", { class: "tick" }, {}, text);
    svg.append(probe);
    const width = probe.getComputedTextLength();
    probe.remove();
    return width;
  }

  function legend(entries) {
    const list = document.createElement("ul");
    list.className = "legend";
    for (const { name, colour, shape } of entries) {
      const item = document.createElement("li"), sample = make("svg", { width: 22, height: 12, "aria-hidden": "true" });
      sample.append(shape === "area" || shape === "bars" ? make("rect", { width: 22, height: 12, rx: 2 }, { fill: colour, opacity: shape === "bars" ? 1 : 0.35 })
        : shape === "up" || shape === "down" ? make("path", { d: triangle(11, 6, 5, shape === "up") }, { fill: colour })
          : make("line", { x1: 0, x2: 22, y1: 6, y2: 6 }, { stroke: colour, "stroke-width": 3, "stroke-dasharray": shape && shape !== "line" ? shape : "none" }));
      item.append(sample, name);
      list.append(item);
    }
    return list;
  }

  // --- what is under the pointer

  // A line's columns at a place between its points, as they are drawn.
  function between(points, t) {
    if (t <= points[0][0]) return points[0];
    for (let k = 1; k < points.length; k++) if (t <= points[k][0]) {
      const [a, b] = [points[k - 1], points[k]], part = (t - a[0]) / (b[0] - a[0] || 1);
      return a.map((value, j) => value + (b[j] - value) * part);
    }
    return points[points.length - 1];
  }

  function nearest(spec, at, px, py) {
    let best = null;
    const offer = (distance, x, y, words) => { if (!best || distance < best.distance) best = { distance, x, y, words }; };
    for (const part of spec.layers) {
      if (!part.words) continue;
      if (part.kind === "bar") {
        const [a, b] = [at.y(part.y0), at.y(part.y1)];
        if (px >= at.x(part.x0) && px < at.x(part.x1) && (part.anywhere || (py >= Math.min(a, b) - 6 && py <= Math.max(a, b) + 6))) offer(0, null, null, part.words());
      } else if (part.kind === "dot" || part.kind === "mark") {
        const y = at.y(part.y) + (part.kind === "mark" ? (part.up ? -9 : 9) : 0), distance = Math.hypot(at.x(part.x) - px, y - py);
        if (distance < (part.reach || 9)) offer(distance - 100, at.x(part.x), y, part.words());  // what has a place of its own goes before lines
      } else if (part.points && part.points.length) {
        const first = at.x(part.points[0][0]), last = at.x(part.points[part.points.length - 1][0]);
        if (px < first - 14 || px > last + 14) continue;
        const values = between(part.points, at.x.invert(Math.min(Math.max(px, first), last)));
        offer(Math.abs(at.y(values[1]) - py), at.x(values[0]), at.y(values[1]), part.words(values, timeText(values[0], spec.x.dates, at.pixel)));
      }
    }
    return best;
  }

  function follow(svg, spec, at) {
    const hide = () => { at.dot.style.display = "none"; tip(null); };
    const show = event => {
      const box = svg.getBoundingClientRect(), k = at.width / box.width, px = (event.clientX - box.x) * k, py = (event.clientY - box.y) * k;
      const found = px < at.left - 14 || px > at.right + 10 || py < at.top - 10 || py > at.bottom + 10 ? null : nearest(spec, at, px, py);
      if (!found) return hide();
      at.dot.style.display = found.x === null ? "none" : "";
      if (found.x !== null) { at.dot.setAttribute("cx", found.x); at.dot.setAttribute("cy", found.y); }
      return tip(found.words, event.clientX, event.clientY);
    };
    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerdown", show);
    svg.addEventListener("pointerleave", hide);
  }

  // The page's one tooltip: pairs of a name and a value, or a sentence. Text only, never markup.
  function tip(words, clientX = 0, clientY = 0) {
    const box = document.getElementById("tip");
    box.hidden = words === null;
    if (words === null) return;
    box.replaceChildren(...(typeof words === "string" ? [words] : words.map(([key, value]) => {
      const line = document.createElement("div"), name = document.createElement("span"), what = document.createElement("b");
      name.textContent = key;
      what.textContent = value;
      line.append(name, " ", what);
      return line;
    })));
    const edge = box.getBoundingClientRect();
    box.style.left = `${Math.max(4, Math.min(clientX + 14, window.innerWidth - edge.width - 8))}px`;
    box.style.top = `${Math.max(4, clientY + 18 + edge.height > window.innerHeight ? clientY - edge.height - 12 : clientY + 18)}px`;
  }

  return { draw, tip, fixed, timeText };
})();
