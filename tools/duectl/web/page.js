/* page.js - asks duectl, and shows what it answers.
 *
 * Everything that is asked is below the page's own address, which holds the token.
 */
"use strict";

const LOOK_MS = 1000; /* between two looks */
const LIST_MS = 3000; /* between two lists of jobs, at least */
const SILENT_MS = 5000; /* for which a look may go on before that is said */
const PAGE_JOBS = 25;
const TOPICS_SHOWN = 200;

const known = { looks: 0, samples: [], topics: [], about: null, owner: null };
const charts = {};
const lists = {};

/* ---- Asking --------------------------------------------------------------------------------- */

/* The lines of an answer, and its end; null: duectl is gone.  One that is busy with others has
 * begun nothing, and is asked again. */
async function ask(path, options, tries = 20) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", redirect: "error", ...options });
  } catch {
    return null;
  }
  const text = await answer.text();
  if (answer.status === 503 && tries > 0) {
    await new Promise((done) => { setTimeout(done, 300); });
    return ask(path, options, tries - 1);
  }
  if (!(answer.headers.get("Content-Type") ?? "").startsWith("application/x-ndjson")) {
    return { lines: [], end: 3, said: text, busy: answer.status === 503 };
  }
  const lines = text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
  return { lines, ...lines.pop() };
}

function say(text) {
  byId("said").hidden = !text;
  byId("said").textContent = visible(text ?? "");
}

function showState(name, text) {
  byId("state").className = `state ${name}`;
  byId("state").textContent = text;
}

/* ---- Samples -------------------------------------------------------------------------------- */

const figures = (sample) => sample.all ?? {
  waiting: sample.owner.waiting, due: sample.owner.ready, reserved: sample.owner.reserved,
  dead: sample.owner.dead,
};

function overdueOf(sample) {
  if (sample.all) {
    const since = dateMs(sample.all.oldest_due);
    return since === null ? 0 : Math.max(0, (sample.at_ms - since) / 1000);
  }
  return sample.overdue_s === undefined ? null : Number(sample.overdue_s);
}

/* Each second, of what an owner counts; a new owner begins anew. */
function rate(sample, before, names) {
  if (!before?.owner || !sample.owner || before.owner.pid !== sample.owner.pid) return null;
  const sum = (s) => names.reduce((n, name) => n + s.owner[name], 0);
  const seconds = (sample.at_ms - before.at_ms) / 1000;
  return seconds > 0 ? Math.max(0, (sum(sample) - sum(before)) / seconds) : null;
}

function seenRate(sample, count) {
  return sample.over_ms > 0 ? (count * 1000) / sample.over_ms : null;
}

/* What @part of the jobs handed out between two looks do not exceed: the end of its bucket. */
function percentile(sample, before, part) {
  if (!sample.late || !before?.late || before.owner?.pid !== sample.owner?.pid) return null;
  const counts = sample.late.map(([, n], i) => Number(n) - Number(before.late[i]?.[1] ?? 0));
  const all = counts[counts.length - 1];
  if (!(all > 0)) return null;
  const at = counts.findIndex((n) => n >= all * part);
  const ends = sample.late.map(([end]) => Number(end.replace("+Inf", "Infinity")));
  return Number.isFinite(ends[at]) ? ends[at] : ends[at - 1];
}

function points(values) {
  return known.samples.map((sample, i) => ({
    t: sample.at_ms, values: values(sample, known.samples[i - 1]),
  }));
}

/* ---- What is shown -------------------------------------------------------------------------- */

function openCharts() {
  const owned = known.about.control;
  charts.jobs = new Chart(byId("chart-jobs"), {
    series: [{ name: "delayed", colour: "blue" }, { name: "due", colour: "amber" },
      { name: "reserved", colour: "violet" }, { name: "dead", colour: "red" }],
    format: countText, stacked: true, whole: true,
  });
  charts.rates = new Chart(byId("chart-rates"), {
    series: owned
      ? [{ name: "put in", colour: "blue" }, { name: "done", colour: "green" },
        { name: "failed", colour: "red" }]
      : [{ name: "came", colour: "blue" }, { name: "went", colour: "green" }],
    format: (v) => `${v >= 10 || v === 0 ? countText(v) : v.toFixed(1)}/s`,
  });
  charts.late = new Chart(byId("chart-late"), {
    series: owned
      ? [{ name: "oldest overdue", colour: "amber" }, { name: "p50 ≤", colour: "blue" },
        { name: "p99 ≤", colour: "violet" }]
      : [{ name: "oldest overdue", colour: "amber" }],
    format: durationText, seconds: true,
  });
}

function showCharts() {
  charts.jobs.show(points((s) => {
    const f = figures(s);
    return [Math.max(0, f.waiting - f.due), f.due, f.reserved, f.dead];
  }));
  charts.rates.show(points((s, before) => (known.about.control
    ? [rate(s, before, ["enqueued"]), rate(s, before, ["acked", "dequeued"]),
      rate(s, before, ["nacked", "buried"])]
    : [seenRate(s, s.came), seenRate(s, s.went)])));
  charts.late.show(points((s, before) => (known.about.control
    ? [overdueOf(s), percentile(s, before, 0.5), percentile(s, before, 0.99)]
    : [overdueOf(s)])));
}

function showTiles(sample) {
  const f = figures(sample);
  const overdue = overdueOf(sample);
  const tiles = [
    ["Waiting", countText(f.waiting), ""],
    ["Due", countText(f.due), f.due > 0 ? "warn" : ""],
    ["Reserved", countText(f.reserved), ""],
    ["Dead", countText(f.dead), f.dead > 0 ? "bad" : ""],
    sample.all ? ["Payloads", sizeText(f.bytes), ""]
      : ["Put in", countText(sample.owner.enqueued), ""],
    ["Oldest overdue", overdue === null ? "–" : durationText(overdue), overdue > 0 ? "warn" : ""],
  ];
  byId("tiles").replaceChildren(...tiles.map(([name, value, kind]) =>
    make("dl", { class: `card tile ${kind}` }, make("dt", {}, name), make("dd", {}, value))));
}

/* Of a queue whose store is not looked into, from the text for Prometheus. */
function topicsOfMetrics(text) {
  const topics = new Map();
  const line = /^due_topic_jobs\{queue="[^"]*",topic="((?:[^"\\]|\\.)*)",state="(\w+)"\} (\d+)$/gm;
  for (const [, name, state, count] of text.matchAll(line)) {
    const topic = name.replace(/\\(["\\n])/g, (_, sign) => (sign === "n" ? "\n" : sign));
    if (!topics.has(topic)) topics.set(topic, { topic, waiting: 0, due: 0, reserved: 0, dead: 0 });
    const row = topics.get(topic);
    if (state === "delayed" || state === "ready") row.waiting += Number(count);
    if (state === "ready") row.due = Number(count);
    if (state === "leased") row.reserved = Number(count);
    if (state === "dead") row.dead = Number(count);
  }
  return [...topics.values()];
}

function nextText(topic) {
  const ms = dateMs(topic.next);
  if (ms === null) return "–";
  return ms <= Date.now() ? "now" : fromNow(topic.next);
}

function showTopics() {
  const number = (name) => ({ title: name, kind: "num", cell: (t) => countText(t[name]) });
  const named = (t) => (known.about.store
    ? make("button", { type: "button", class: "link", "data-topic": topicAddress(t.topic),
      onclick: () => chooseTopic(t.topic) }, topicName(t.topic))
    : topicName(t.topic));
  fill(byId("topics"), [
    { title: "topic", kind: "half", cell: named },
    number("waiting"), number("due"), number("reserved"), number("dead"),
    ...(known.about.store
      ? [{ title: "payloads", kind: "num", cell: (t) => sizeText(t.bytes) },
        { title: "next", kind: "num", cell: (t) => nextText(t) }]
      : []),
  ], known.topics.slice(0, TOPICS_SHOWN), "The queue is empty.");
  byId("topics-count").textContent = known.topics.length <= TOPICS_SHOWN ? ""
    : `${countText(TOPICS_SHOWN)} of ${countText(known.topics.length)}`;
}

/* ---- The list of queues --------------------------------------------------------------------- */

/* The other queues have addresses beside this one, behind the same token. */
function queueLink(queue) {
  const path = `/${location.pathname.split("/")[1]}/${queue.number}/`;
  return make("a", { href: path, "data-place": visible(queue.place),
    "aria-current": queue.number === known.about.number ? "page" : null }, brief(queue.name, 255));
}

/* What is away is told from what has not answered yet. */
function queueState(queue) {
  if (queue.end > 0) return "away";
  if (queue.busy_ms > SILENT_MS) return "silent";
  return queue.last ? "live" : "asked";
}

function showQueues(queues) {
  const count = (name) => (queue) =>
    (queue.last ? countText(figures(queue.last.sample)[name]) : "–");
  const number = (name) => ({ title: name, kind: "num", cell: count(name) });
  const overdue = (queue) => (queue.last ? overdueOf(queue.last.sample) : null);
  byId("queues-card").hidden = queues.length === 0;
  fill(byId("queues"), [
    { title: "queue", kind: "half", cell: queueLink, hint: (q) => visible(q.place) },
    { title: "in", kind: "half", cell: (q) => brief(q.place, 255) },
    { title: "state", hint: (q) => visible(q.said) || null,
      cell: (q) => make("span", { class: `tag ${queueState(q)}` }, queueState(q)) },
    number("waiting"), number("due"), number("reserved"), number("dead"),
    { title: "overdue", kind: "num",
      cell: (q) => (overdue(q) === null ? "–" : durationText(overdue(q))) },
  ], queues, "");
}

function jobLink(job) {
  return make("button", { type: "button", class: "link mono", onclick: () => showJob(job.id) },
    job.id);
}

const columns = {
  id: { title: "id", cell: jobLink },
  state: { title: "state", cell: stateTag },
  due: { title: "due", cell: (job) => fromNow(job.until ?? job.deadline),
    hint: (job) => job.until ?? job.deadline },
  topic: { title: "topic", cell: (job) => topicName(job.topic) },
  key: { title: "key", cell: (job) => brief(job.key, 60) },
  tries: { title: "tries", kind: "num", cell: (job) => job.attempts ?? 0 },
  bytes: { title: "bytes", kind: "num", cell: (job) => countText(job.bytes) },
  text: { title: "payload", kind: "cut mono", cell: (job) => brief(job.data) },
  died: { title: "died", cell: (job) => fromNow(job.dead.at), hint: (job) => job.dead.at },
  cause: { title: "cause", cell: (job) => job.dead.cause },
  reason: { title: "reason", kind: "half", cell: (job) => brief(job.dead.reason) || "–",
    hint: (job) => brief(job.dead.reason, 1000) || null },
};

/* ---- Lists ---------------------------------------------------------------------------------- */

const jobsOf = (lines, name) =>
  lines.filter((l) => l[name]).map((l) => ({ ...l[name], bytes: l.bytes }));

/* What is asked last is shown, whatever is answered first. */
async function showList(list) {
  const number = (list.number = (list.number ?? 0) + 1);
  const began = performance.now();
  const answer = await ask(`api/jobs?${list.wanted()}&from=${list.pages.from}&most=${PAGE_JOBS}`);
  if (number !== list.number) return;
  list.next = performance.now() + Math.max(LIST_MS, 10 * (performance.now() - began));
  if (answer === null || answer.busy) return;
  const jobs = jobsOf(answer.lines, "job");
  fill(list.table, list.columns(), jobs, answer.end > 1 ? answer.said : list.empty);
  list.pages.show(jobs.length, answer.lines.some((l) => l.more));
}

function restart(list) {
  list.pages.from = 0;
  showList(list);
}

function wantedJobs() {
  const parts = [];
  if (byId("find").value.trim() !== "") {
    parts.push("find=" + encodeURIComponent(byId("find").value.trim()));
  }
  if (byId("by-state").value) parts.push("state=" + byId("by-state").value);
  if (byId("by-topic").value !== "*") parts.push("topic=" + byId("by-topic").value.slice(1));
  return parts.join("&");
}

function openLists() {
  const c = columns;
  lists.dead = {
    table: byId("dead"), wanted: () => "state=dead", empty: "Nothing has died.",
    columns: () => [c.id, c.died, c.cause, c.reason, c.tries, c.topic, c.text,
      ...(known.about.writes ? [{ title: "", kind: "num", cell: actions }] : [])],
  };
  lists.jobs = {
    table: byId("jobs"), wanted: wantedJobs, empty: "There is no such job.",
    columns: () => [c.id, c.state, c.due, c.topic, c.key, c.tries, c.bytes, c.text],
  };
  for (const [name, list] of Object.entries(lists)) {
    list.pages = new Pages(byId(`${name}-pages`), PAGE_JOBS, () => showList(list));
    showList(list);
  }
}

function topicOptions() {
  const chosen = byId("by-topic").value;
  const options = known.topics.slice(0, 1000).map((t) =>
    make("option", { value: "=" + topicAddress(t.topic) }, topicName(t.topic)));
  const all = [make("option", { value: "*" }, "any topic"), ...options];
  if (all.length === byId("by-topic").length &&
      all.every((o, i) => o.value === byId("by-topic").options[i].value)) return;
  byId("by-topic").replaceChildren(...all);
  byId("by-topic").value = all.some((o) => o.value === chosen) ? chosen : "*";
}

function chooseTopic(topic) {
  byId("by-topic").value = "=" + topicAddress(topic);
  restart(lists.jobs);
  byId("jobs-card").scrollIntoView({ behavior: "smooth" });
}

/* ---- One job -------------------------------------------------------------------------------- */

const SHORT = { keep_key_ns: "key stays", ttl_ns: "time limit", every_ns: "every" };

function fieldText(name, value) {
  if (name.endsWith("_ns")) return durationText(value / 1e9);
  if (name === "topic") return topicName(value);
  if (["key", "group", "headers", "reason"].includes(name)) return brief(value, 1000);
  if (["deadline", "until", "expires", "at"].includes(name)) return `${value} (${fromNow(value)})`;
  return typeof value === "object" ? JSON.stringify(value) : visible(String(value));
}

function showJobFields(job, bytes) {
  const { data, dead, ...rest } = job;
  const death = dead ? { died: dead.at, cause: dead.cause, reason: dead.reason } : {};
  const rows = Object.entries({ ...rest, ...death, bytes })
    .filter(([, value]) => value !== undefined);
  byId("job-fields").replaceChildren(...rows.flatMap(([name, value]) =>
    [make("dt", {}, SHORT[name] ?? name),
      make("dd", {}, name === "died" ? fieldText("at", value) : fieldText(name, value))]));
  const raw = typeof data === "object" ? bytesOf(data.base64) : null;
  const shown = raw ? hexDump(raw.subarray(0, 65536)) : visible(data);
  const length = raw ? Math.min(raw.length, 65536) : new TextEncoder().encode(data).length;
  byId("job-data").className = raw ? "hex" : "";
  byId("job-data").textContent =
    shown + (length < bytes ? `\n… ${countText(bytes - length)} bytes more` : "");
}

async function showJob(id) {
  const answer = await ask(`api/job?id=${id}`);
  const line = answer?.lines.find((l) => l.job);
  byId("job-title").textContent = `Job ${id}`;
  byId("job-actions").replaceChildren();
  if (line) {
    showJobFields(line.job, line.bytes);
    if (known.about.writes && line.job.state === "dead") {
      byId("job-actions").replaceChildren(...actions(line.job));
    }
  } else {
    byId("job-fields").replaceChildren();
    byId("job-data").textContent = answer?.said || "It is not there any more.";
  }
  if (!byId("job").open) byId("job").showModal();
}

/* ---- Changes -------------------------------------------------------------------------------- */

function sure(text) {
  return new Promise((done) => {
    const box = byId("ask");
    byId("ask-text").textContent = text;
    byId("ask-yes").onclick = () => box.close("yes");
    byId("ask-no").onclick = () => box.close("no");
    box.onclose = () => done(box.returnValue === "yes");
    box.returnValue = "no";
    box.showModal();
  });
}

async function change(request) {
  const answer = await ask("api/change", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request),
  });
  const failed = (answer?.lines ?? []).find((l) => l.result && l.result !== "DUE_OK");
  known.kept = answer === null ? "duectl is gone" : answer.said || (failed ? failed.result : "");
  known.keptUntil = performance.now() + 8000;
  say(known.kept);
  byId("job").close();
  for (const list of Object.values(lists)) showList(list);
}

async function drop(request, text) {
  if (await sure(text)) await change(request);
}

function actions(job) {
  return [
    make("button", { type: "button", class: "kick", "data-id": job.id,
      onclick: () => change({ verb: "kick", ids: [job.id] }) }, "Kick"),
    make("button", { type: "button", class: "drop danger", "data-id": job.id,
      onclick: () => drop({ verb: "drop", ids: [job.id] },
        `Job ${job.id} will be gone for good.`) }, "Drop"),
  ];
}

function openActions() {
  if (!known.about.writes) return;
  byId("dead-all").append(
    make("button", { type: "button", id: "kick-all", onclick: () => change({ verb: "kick_all" }) },
      "Kick all"),
    make("button", { type: "button", id: "drop-all", class: "danger",
      onclick: () => drop({ verb: "drop_all" }, "All dead jobs will be gone for good.") },
    "Drop all"));
}

/* ---- The page ------------------------------------------------------------------------------- */

function open(about) {
  known.about = about;
  byId("mode").textContent = about.writes ? "changes allowed" : "read only";
  byId("mode").classList.toggle("writes", about.writes);
  for (const id of ["oldest-card", "jobs-card"]) byId(id).hidden = !about.store;
  byId("dead-card").hidden = !about.store && !about.writes;
  byId("dead").hidden = !about.store;
  openCharts();
  openActions();
  if (!about.store) return;
  openLists();
  byId("find").addEventListener("input", () => {
    clearTimeout(known.typing);
    known.typing = setTimeout(() => restart(lists.jobs), 200);
  });
  byId("by-state").addEventListener("change", () => restart(lists.jobs));
  byId("by-topic").addEventListener("change", () => restart(lists.jobs));
}

function takeIn(lines) {
  const fresh = lines.filter((l) => l.sample).map((l) => l.sample);
  const { looks } = lines.find((l) => l.looks !== undefined);
  const metrics = lines.find((l) => l.metrics);
  if (looks < known.looks) known.samples = [];
  known.looks = looks;
  known.samples = known.samples.concat(fresh).slice(-900);
  known.topics = metrics ? topicsOfMetrics(metrics.metrics)
    : lines.filter((l) => l.topic).map((l) => l.topic);
  return known.samples[known.samples.length - 1];
}

function showAll(answer, last) {
  const queues = answer.lines.filter((l) => l.listed).map((l) => l.listed);
  const listed = queues.find((q) => q.number === known.about.number);
  const own = last?.owner && !known.about.store ? last.owner.queue : known.about.queue;
  const queue = brief(listed?.name ?? own, 255);
  showQueues(queues);
  byId("queue").textContent = queue;
  document.title = `${queue} – duectl`;
  if (!last) return;
  showTiles(last);
  showCharts();
  showTopics();
  if (!known.about.store) return;
  topicOptions();
  const c = columns;
  fill(byId("oldest"), [c.id, { ...c.due, title: "was due" }, c.topic, c.text],
    jobsOf(answer.lines, "oldest"), "Nothing is overdue.");
  for (const list of Object.values(lists)) {
    if (performance.now() >= (list.next ?? Infinity)) {
      list.next = Infinity;
      showList(list);
    }
  }
}

async function look() {
  const answer = await ask(`api/look?after=${known.looks}`);
  if (answer === null) {
    showState("lost", "duectl has ended, or cannot be reached");
    return;
  }
  const about = answer.lines.find((l) => l.queue);
  if (!about) {
    say(answer.said);
    return;
  }
  if (!known.about) open(about);
  const last = takeIn(answer.lines);
  showAll(answer, last);
  const unread = last?.unreadable > 0
    ? `${last.unreadable} jobs cannot be read: duectl verify says more` : "";
  if (answer.said || unread || !(performance.now() < known.keptUntil)) say(answer.said || unread);
  showState(answer.end > 0 || !last ? "lost" : "live",
    answer.end > 0 || !last ? "cannot be looked at" : `looked at ${clockText(last.at_ms)}`);
}

/* One look at a time. */
async function goOn() {
  if (document.visibilityState !== "hidden") {
    try {
      await look();
    } catch (error) {
      showState("lost", `the page has a fault: ${error.message}`);
    }
  }
  setTimeout(goOn, LOOK_MS);
}

byId("job-close").addEventListener("click", () => byId("job").close());
goOn();
