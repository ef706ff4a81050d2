/* jobs.js - values as text, and lists of jobs.
 *
 * What comes from a queue may be anything.  It goes into the page as text (textContent), and what
 * could hide or turn other text is spelled out.
 */
"use strict";

const byId = (id) => document.getElementById(id);

function make(name, attributes, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "onclick") made.addEventListener("click", value);
    else if (value !== null && value !== false) made.setAttribute(key, value);
  }
  made.append(...inside.map((part) => (part instanceof Node ? part : String(part))));
  return made;
}

/* ---- Texts ---------------------------------------------------------------------------------- */

/* Control characters, and marks that change the direction of writing or take no room. */
const HIDDEN = new RegExp("[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c" +
  "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]", "g");

function visible(text) {
  return text.replace(HIDDEN, (sign) => {
    const number = sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return sign === "\r" ? "␍" : `⟨U+${number}⟩`;
  });
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0"));
}

/* A value of JSON Lines, on one line: text, or bytes in hexadecimal. */
function brief(value, most = 160) {
  if (value === undefined) return "";
  if (typeof value === "object") {
    return "0x " + hex(bytesOf(value.base64).subarray(0, 48)).join(" ");
  }
  return visible(value.slice(0, most).replace(/[\n\t]+/g, " "));
}

/* 16 bytes a line: place, hexadecimal, text. */
function hexDump(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const part = bytes.subarray(at, at + 16);
    const text = Array.from(part, (b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·"));
    const place = at.toString(16).padStart(6, "0");
    lines.push(`${place}  ${hex(part).join(" ").padEnd(47)}  ${text.join("")}`);
  }
  return lines.join("\n");
}

function topicName(topic) {
  return topic === "" || topic === undefined ? "–" : brief(topic, 255);
}

/* How a topic stands in an address: its bytes. */
function topicAddress(topic) {
  if (typeof topic === "string") return encodeURIComponent(topic);
  return hex(bytesOf(topic.base64)).map((pair) => "%" + pair).join("");
}

/* ---- Figures -------------------------------------------------------------------------------- */

const countText = (n) => Math.round(n).toLocaleString("en");

function sizeText(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (n >= 1000 && at < units.length - 1) {
    n /= 1000;
    at++;
  }
  return `${at === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[at]}`;
}

function durationText(s) {
  const sign = s < 0 ? "-" : "";
  s = Math.abs(s);
  if (s === 0) return "0 s";
  if (s < 0.0000995) return `${sign}${(s * 1e6).toFixed(0)} µs`;
  if (s < 0.995) return `${sign}${(s * 1e3).toFixed(s < 0.00995 ? 1 : 0)} ms`;
  if (s < 60) return `${sign}${s.toFixed(s < 10 ? 1 : 0)} s`;
  if (s < 3600) return `${sign}${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 172800) return `${sign}${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${sign}${Math.floor(s / 86400)} d`;
}

/* Milliseconds since 1970 of a date, which has nine digits of a second; null: never. */
function dateMs(date) {
  const ms = date === undefined || date === "never" ? NaN : Date.parse(date.slice(0, 23) + "Z");
  return Number.isNaN(ms) ? null : ms;
}

/* How long a date is ahead or past. */
function fromNow(date) {
  const ms = dateMs(date);
  if (ms === null) return "never";
  const s = (ms - Date.now()) / 1000;
  return s >= 0 ? `in ${durationText(s)}` : `${durationText(-s)} ago`;
}

/* ---- Tables --------------------------------------------------------------------------------- */

/* What is the same stays, so that a button is not exchanged while somebody presses it.  One that
 * belongs to a job or a topic names it in an attribute, and so is the same only for that. */
function exchange(old, made) {
  while (old.children.length > made.length) old.lastElementChild.remove();
  made.forEach((part, i) => {
    const there = old.children[i];
    if (!there) old.append(part);
    else if (there.isEqualNode(part)) return;
    else if (["td", "th"].includes(part.localName)) there.replaceWith(part);
    else exchange(there, [...part.children]);
  });
}

/* @columns: [{ title, kind, cell(row) }]. */
function fill(table, columns, rows, empty) {
  const head = make("tr", {}, ...columns.map((c) =>
    make("th", { class: (c.kind ?? "").replace("mono", "") || null }, c.title)));
  const body = rows.map((row) => make("tr", {}, ...columns.map((c) => {
    const inside = c.cell(row);
    return make("td", { class: c.kind, title: c.hint ? c.hint(row) : null },
      ...(Array.isArray(inside) ? inside : [inside]));
  })));
  if (rows.length === 0) {
    body.push(make("tr", {}, make("td", { class: "none", colspan: columns.length }, empty)));
  }
  exchange(table, [make("thead", {}, head), make("tbody", {}, ...body)]);
}

const isDue = (job) => job.state === "waiting" && dateMs(job.until ?? job.deadline) <= Date.now();

function stateTag(job) {
  const name = isDue(job) ? "due" : job.state;
  return make("span", { class: `tag ${name}` }, name);
}

/* Where a list of jobs has got to, with buttons for the pages before and behind. */
class Pages {
  constructor(nav, size, go) {
    Object.assign(this, { nav, size, from: 0 });
    this.back = make("button", { type: "button", onclick: () => this.turn(-size, go) }, "Previous");
    this.next = make("button", { type: "button", onclick: () => this.turn(size, go) }, "Next");
    this.text = make("span");
    nav.append(this.back, this.next, this.text);
  }

  turn(by, go) {
    this.from = Math.max(0, this.from + by);
    go();
  }

  show(count, more) {
    this.back.disabled = this.from === 0;
    this.next.disabled = !more;
    this.nav.hidden = this.from === 0 && !more;
    this.text.textContent = count === 0 ? "" : `${this.from + 1} to ${this.from + count}`;
  }
}
