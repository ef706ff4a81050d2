// The jobs, and the line that a cell prints.

import { die, serverSeconds, WRONG } from './server.js';

const ALL = (1n << 64n) - 1n;
const HOUR_MS = 3600000;

export function mix(x) {
  x ^= x >> 30n;
  x = (x * 0xbf58476d1ce4e5b9n) & ALL;
  x ^= x >> 27n;
  x = (x * 0x94d049bb133111ebn) & ALL;
  return x ^ (x >> 31n);
}

// The delay of a job that is put in far away: an hour, and within one more; whole ms.
export function delayMs(number) {
  const r = mix((42n + BigInt(number) * 0x9e3779b97f4a7c15n) & ALL);
  return HOUR_MS + Math.ceil(Number(r >> 11n) * 2 ** -53 * HOUR_MS);
}

// Jobs are JSON there, so the bytes are text: the number in 16 digits, repeated.
export function payload(number, size) {
  return number.toString(16).padStart(16, '0').repeat(size / 16);
}

// The number, or -1: it is not as it went in.
export function read(text, size) {
  if (typeof text !== 'string' || text.length !== size) return -1;
  const digits = text.slice(0, 16);
  return digits.repeat(size / 16) === text ? Number.parseInt(digits, 16) : -1;
}

export function hashOf(numbers) {
  let hash = 0n;
  for (const number of numbers) hash = (hash + mix(BigInt(number))) & ALL;
  return hash;
}

export function hashBelow(count) {
  let hash = 0n;
  for (let i = 0n; i < BigInt(count); i++) hash = (hash + mix(i)) & ALL;
  return hash;
}

export function addHashes(a, b) {
  return (a + b) & ALL;
}

// What this process has used.
export function usageNow() {
  const u = process.resourceUsage();
  return {
    cpu: (u.userCPUTime + u.systemCPUTime) / 1e6,
    voluntary: u.voluntaryContextSwitches,
    involuntary: u.involuntaryContextSwitches,
  };
}

export function usedSince(before) {
  const now = usageNow();
  return {
    cpu: now.cpu - before.cpu,
    voluntary: now.voluntary - before.voluntary,
    involuntary: now.involuntary - before.involuntary,
  };
}

// Tells what the server has used since, a job, and answers what it has used now.
export function sayServer(line, name, before, jobs) {
  const now = serverSeconds();
  if (before >= 0 && now >= 0) line.more[name] = ((now - before) / jobs) * 1e6;
  return now;
}

export function checkLine(line, jobs) {
  if (line.count !== jobs) die(WRONG, `${line.count} jobs came out, not ${jobs}`);
  if (line.hash !== hashBelow(jobs)) die(WRONG, 'jobs are lost and others doubled');
}

export function printLine(line, workload, unit) {
  const { value, count, hash, wall, used, more } = line;
  console.log(JSON.stringify({
    workload, subject: 'bullmq', value, unit, count,
    hash: hash.toString(16).padStart(16, '0'),
    wall_s: wall, cpu_s: used.cpu, voluntary: used.voluntary, involuntary: used.involuntary, more,
  }));
}
