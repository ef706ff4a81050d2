/* charts.js - lines over time, drawn as SVG. */
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 60, right: 8, top: 8, bottom: 24 };

function svg(name, attributes, ...inside) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

/* A round number, at least @value; of seconds also parts of minutes and hours. */
function roundUp(value, seconds) {
  if (!(value > 0)) return 1;
  const clock = [60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400];
  if (seconds && value > 30 && value <= 86400) return clock.find((step) => step >= value);
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((n) => n * power).find((step) => step >= value * 0.999999);
}

function clockText(ms) {
  return new Date(ms).toLocaleTimeString([], { hour12: false });
}

/* A chart in @host.  @series: [{ name, colour }]; points: [{ t, values }], of which null is a gap.
 * @format writes a value; a stacked one shows each on top of those before. */
class Chart {
  constructor(host, { series, format, stacked = false, whole = false, seconds = false }) {
    Object.assign(this, { series, format, stacked, whole, seconds, points: [], at: null });
    this.picture = svg("svg", { class: "chart", role: "img" });
    this.legend = document.createElement("div");
    this.legend.className = "legend";
    this.marks = series.map(({ name, colour }) => {
      const value = document.createElement("b");
      const label = document.createElement("span");
      label.append(svg("svg", { viewBox: "0 0 10 10" },
        svg("circle", { cx: 5, cy: 5, r: 4, class: colour })), name, value);
      this.legend.append(label);
      return value;
    });
    host.append(this.picture, this.legend);
    new ResizeObserver(() => this.draw()).observe(this.picture);
    this.picture.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.picture.addEventListener("pointerleave", () => this.point(null));
  }

  show(points) {
    this.points = points;
    this.draw();
  }

  /* The values as they are drawn. */
  heights(point) {
    let sum = 0;
    return point.values.map((v) => (this.stacked && v !== null ? (sum += v) : v));
  }

  scale() {
    const box = this.picture.getBoundingClientRect();
    const first = this.points[0].t;
    const last = Math.max(this.points[this.points.length - 1].t, first + 30000);
    const highest = Math.max(0, ...this.points.flatMap((p) => this.heights(p)));
    let top = roundUp(highest, this.seconds);
    if (this.whole && top < 10) top = Math.max(2 * Math.ceil(top / 2), 4);
    const width = Math.max(box.width - MARGIN.left - MARGIN.right, 10);
    const height = Math.max(box.height - MARGIN.top - MARGIN.bottom, 10);
    return {
      top, first, last, width, height,
      x: (t) => MARGIN.left + ((t - first) / (last - first)) * width,
      y: (v) => MARGIN.top + height - (v / top) * height,
    };
  }

  axes(s) {
    const made = [];
    for (const part of [0, 0.5, 1]) {
      const y = s.y(s.top * part);
      made.push(svg("line", { class: "grid", x1: MARGIN.left, x2: MARGIN.left + s.width,
        y1: y, y2: y }));
      made.push(svg("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" },
        this.format(s.top * part)));
    }
    for (const [part, anchor] of [[0, "start"], [0.5, "middle"], [1, "end"]]) {
      const t = s.first + (s.last - s.first) * part;
      made.push(svg("text", { x: s.x(t), y: MARGIN.top + s.height + 16, "text-anchor": anchor },
        clockText(t)));
    }
    return made;
  }

  /* A line for each run of points without a gap; under a stacked one its area. */
  lines(s, index) {
    const runs = [];
    let run = null;
    for (const point of this.points) {
      const high = this.heights(point)[index];
      if (high === null) {
        run = null;
      } else {
        if (run === null) runs.push(run = []);
        const low = this.stacked ? high - point.values[index] : 0;
        run.push([s.x(point.t), s.y(high), s.y(low)]);
      }
    }
    return runs.flatMap((points) => {
      const tops = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`);
      const lows = points.map(([x, , y]) => `${x.toFixed(1)},${y.toFixed(1)}`).reverse();
      const { colour } = this.series[index];
      const line = svg("path", { class: `line ${colour}`, d: `M${tops.join("L")}` });
      if (points.length === 1) line.setAttribute("stroke-linecap", "round");
      if (!this.stacked) return [line];
      return [svg("path", { class: `area ${colour}`, d: `M${tops.join("L")}L${lows.join("L")}Z` }),
        line];
    });
  }

  draw() {
    if (this.points.length === 0) return;
    const s = this.scale();
    const paths = this.series.flatMap((_, index) => this.lines(s, index));
    const shown = this.at ?? this.points[this.points.length - 1];
    if (this.at !== null) {
      paths.push(svg("line", { class: "cursor", x1: s.x(shown.t), x2: s.x(shown.t),
        y1: MARGIN.top, y2: MARGIN.top + s.height }));
    }
    this.picture.replaceChildren(...this.axes(s), ...paths);
    this.marks.forEach((mark, index) => {
      const value = shown.values[index];
      mark.textContent = value === null || value === undefined ? "–" : this.format(value);
    });
    this.s = s;
  }

  /* Show the values at the pointer. */
  point(x) {
    this.at = null;
    if (x !== null && this.s) {
      const far = (point) => Math.abs(this.s.x(point.t) - x);
      for (const point of this.points) {
        if (this.at === null || far(point) < far(this.at)) this.at = point;
      }
    }
    this.draw();
  }
}
