// The processes that consume.  Each says "ready", begins when it is told a line, says from time to
// time how many jobs it has done, and ends when its input does, with what it has counted.

import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { addHashes } from './line.js';
import { child, die, nap, WRONG } from './server.js';

const PATIENT_MS = 20000;

let crew = [];

// In ms of the machine's clock, finer than whole ones.
export function nowMs() {
  return performance.timeOrigin + performance.now();
}

function start(o) {
  const words = [fileURLToPath(new URL('./main.js', import.meta.url)), 'consume',
    '--server', o.server, '--consumers', o.consumers / o.processes, '--batch', o.batch,
    '--payload', o.payload, '--jobs', o.jobs];
  const process_ = child(process.execPath, words.map(String),
    { stdio: ['pipe', 'pipe', 'inherit'] });
  const one = { process: process_, done: 0, counted: undefined };
  one.ready = new Promise((resolve) => {
    one.ended = new Promise((end) => {
      createInterface({ input: process_.stdout }).on('line', (text) => {
        if (text === 'ready') resolve();
        else if (text.startsWith('+')) one.done = Number(text.slice(1));
        else one.counted = JSON.parse(text);
      }).on('close', end);
    });
  });
  process_.on('exit', (status) => {
    if (one.counted === undefined && status !== 0)
      die(WRONG, 'a process that consumes has ended');
  });
  return one;
}

export async function startCrew(o) {
  crew = Array.from({ length: o.processes }, () => start(o));
  await Promise.all(crew.map((one) => one.ready));
}

// Answers when they were let begin.
export function beginCrew() {
  const at = nowMs();
  for (const one of crew) one.process.stdin.write('go\n');
  return at;
}

// Answers when so many jobs are done, and a while after, for those that come a second time.
async function waitCrew(jobs) {
  let seen = 0;
  let since = nowMs();
  for (;;) {
    const count = crew.reduce((sum, one) => sum + one.done, 0);
    if (count >= jobs) break;
    if (count !== seen) {
      seen = count;
      since = nowMs();
    }
    if (nowMs() - since > PATIENT_MS)
      die(WRONG, `${count} jobs of ${jobs} were done, and no more`);
    await nap(2);
  }
  await nap(100);
}

export async function endCrew(jobs) {
  const all = {
    count: 0, hash: 0n, last: 0, had: {}, used: { cpu: 0, voluntary: 0, involuntary: 0 },
  };
  await waitCrew(jobs);
  for (const one of crew) one.process.stdin.end();
  for (const one of crew) {
    await one.ended;
    if (one.counted === undefined) die(WRONG, 'a process that consumes did not end well');
    const { count, garbled, hash, last, had, used } = one.counted;
    if (garbled > 0) die(WRONG, `${garbled} jobs were not as they went in`);
    all.count += count;
    all.hash = addHashes(all.hash, BigInt(hash));
    all.last = Math.max(all.last, last);
    Object.assign(all.had, had);
    for (const name of Object.keys(all.used)) all.used[name] += used[name];
  }
  crew = [];
  return all;
}
