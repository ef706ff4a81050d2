// What BullMQ has is used as its documentation shows: addBulk() for many jobs at a time, workers
// that take the next job with the command that ends the last one, and removeOnComplete, so that
// what is done is gone as it is for the others.  A batch of a consumer is its concurrency.  Each
// producer has a loop of its own on the one connection of its queue.

import { createInterface } from 'node:readline';
import { Queue, Worker } from 'bullmq';
import { beginCrew, endCrew, nowMs, startCrew } from './crew.js';
import {
  delayMs, hashBelow, hashOf, payload, read, sayServer, usageNow, usedSince,
} from './line.js';
import { die, nap, serverSeconds, startServer, WRONG } from './server.js';

export const about = 'BullMQ';

const NAME = 'bench';
const FEW = 10000;
const SLACK_MS = 1; // clocks of different processes, of whole and of finer ms

function openQueue(o) {
  return new Queue(NAME, {
    connection: { path: o.server },
    defaultJobOptions: { removeOnComplete: true },
  });
}

function job(o, number, far) {
  const opts = far ? { delay: delayMs(number) } : {};
  return { name: NAME, data: payload(number, o.payload), opts };
}

// One of the loops that put in.
async function produce(o, queue, first, far) {
  const batch = Math.max(o.batch, 1);
  for (let at = first; at < o.jobs;) {
    const jobs = [];
    for (; jobs.length < batch && at < o.jobs; at += o.producers) jobs.push(job(o, at, far));
    if (o.batch > 0) await queue.addBulk(jobs);
    else await queue.add(jobs[0].name, jobs[0].data, jobs[0].opts);
  }
}

// Answers the seconds it took.
async function putAll(o, queue, far) {
  const before = nowMs();
  await Promise.all(Array.from({ length: o.producers }, (_, p) => produce(o, queue, p, far)));
  return (nowMs() - before) / 1000;
}

export async function runPut(o) {
  const line = { more: {} };
  o.server = await startServer();
  const queue = openQueue(o);
  await queue.waitUntilReady();
  const server = serverSeconds();
  const before = usageNow();
  line.wall = await putAll(o, queue, true);
  line.used = usedSince(before);
  sayServer(line, 'server_us', server, o.jobs);
  line.value = o.jobs / line.wall;
  const counts = await jobsOf(queue);
  if (counts.other > 0) die(WRONG, `${counts.other} jobs are due at once`);
  line.count = counts.later;
  line.hash = hashBelow(line.count);
  return line;
}

// Jobs that the server has: not due yet; and all others, those included that are done and kept.
async function jobsOf(queue) {
  const { delayed, ...others } = await queue.getJobCounts();
  return { later: delayed, other: Object.values(others).reduce((sum, n) => sum + n, 0) };
}

// Who does not ack is fast.
async function noneLeft(queue) {
  const { later, other } = await jobsOf(queue);
  if (later + other > 0) die(WRONG, `${later + other} jobs are left`);
}

function take(line, all, began) {
  line.count = all.count;
  line.hash = all.hash;
  line.used = all.used;
  line.wall = (all.last - began) / 1000;
}

// Putting in by batches of 256 is not measured.
export async function runWork(o) {
  const line = { more: {} };
  o.server = await startServer();
  await startCrew(o);
  const queue = openQueue(o);
  await queue.waitUntilReady();
  const server = serverSeconds();
  await putAll({ ...o, batch: 256, producers: 1 }, queue, false);
  const between = sayServer(line, 'put_server_us', server, o.jobs);
  const began = beginCrew();
  take(line, await endCrew(o.jobs), began);
  await noneLeft(queue);
  sayServer(line, 'work_server_us', between, o.jobs);
  sayServer(line, 'life_server_us', server, o.jobs);
  line.value = o.jobs / line.wall;
  return line;
}

// Times are whole ms in BullMQ, so ours are rounded up.
export async function runLate(o) {
  const line = { more: {} };
  const due = [];
  if (o.jobs > FEW) die(WRONG, `--jobs: at most ${FEW}`);
  o.server = await startServer();
  await startCrew(o);
  const queue = openQueue(o);
  await queue.waitUntilReady();
  const began = beginCrew();
  const start = nowMs() + 100;
  for (let i = 0; i < o.jobs; i++) {
    await nap(start + (i * o['gap-ns']) / 1e6 - nowMs());
    const timestamp = Math.ceil(nowMs());
    due.push(timestamp + 1000);
    await queue.add(NAME, payload(i, o.payload), { timestamp, delay: 1000 });
  }
  const all = await endCrew(o.jobs);
  take(line, all, began);
  await noneLeft(queue);
  const late = due.map((at, i) => all.had[i] - at).sort((a, b) => a - b);
  if (late[0] < -SLACK_MS) die(WRONG, `a job is early by ${-late[0]} ms`);
  line.value = Math.max(late[Math.floor((o.jobs - 1) / 2)], 0) * 1000;
  line.more.p99_us = Math.max(late[Math.floor(((o.jobs - 1) * 99) / 100)], 0) * 1000;
  line.more.most_us = Math.max(late[o.jobs - 1], 0) * 1000;
  return line;
}

// The whole of a process that consumes.
export async function consume(o) {
  const numbers = [];
  const had = {};
  let garbled = 0;
  let last = 0;
  let said = 0;
  const handle = async (one) => {
    const number = read(one.data, o.payload);
    last = nowMs();
    if (number < 0) garbled++;
    else numbers.push(number);
    if (o.jobs <= FEW) had[number] = last;
  };
  const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const workers = Array.from({ length: o.consumers }, () => new Worker(NAME, handle, {
    connection: { path: o.server, maxRetriesPerRequest: null },
    concurrency: Math.max(o.batch, 1),
    autorun: false,
  }));
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  process.stdout.write('ready\n');
  if ((await input.next()).done) return;
  const before = usageNow();
  for (const worker of workers) worker.run().catch((error) => die(WRONG, error.message));
  const timer = setInterval(() => {
    const count = numbers.length + garbled;
    if (count !== said) process.stdout.write(`+${count}\n`);
    said = count;
  }, 5);
  await input.next();
  clearInterval(timer);
  const used = usedSince(before);
  await Promise.all(workers.map((worker) => worker.close()));
  const whole = {
    count: numbers.length + garbled, garbled, hash: hashOf(numbers).toString(), last, had, used,
  };
  await new Promise((resolve) => process.stdout.write(`${JSON.stringify(whole)}\n`, resolve));
}
