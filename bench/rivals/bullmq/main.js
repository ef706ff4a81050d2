// bench_bullmq runs one cell of a shared queue: BullMQ on a private redis-server without a log.
//
//     bench_bullmq WORKLOAD --subject bullmq [--option VALUE]...
//     bench_bullmq --list | --list-workloads
//
// README.md of the benchmarks says what the options, the line and the exit status mean.  With the
// word consume it is one of its own processes that consume (crew.js).

import { readFileSync } from 'node:fs';
import { about, consume, runLate, runPut, runWork } from './bullmq.js';
import { checkLine, printLine } from './line.js';
import { cleanUp, die, USAGE, WRONG } from './server.js';

const WORKLOADS = {
  'shared-put': ['putting in jobs far away', 'jobs/s', 100000, runPut],
  'shared-work': ['taking and acking jobs that are due', 'jobs/s', 100000, runWork],
  'shared-late': ['how late a job is taken by one who waits', 'us', 200, runLate],
};

const RANGES = {
  jobs: [1, 2 ** 31], producers: [1, 4096], consumers: [1, 64], processes: [1, 64],
  batch: [0, 4096], payload: [16, 1024], 'gap-ns': [1, 6e10],
  'poll-ns': [1, 6e10], // it is not asked at intervals
};

function parse(words, jobs) {
  const o = {
    jobs, producers: 1, consumers: 1, processes: 1, batch: 0, payload: 64, 'gap-ns': 2e7,
  };
  for (let i = 0; i < words.length; i += 2) {
    const name = words[i].replace(/^--/, '');
    const value = words[i + 1];
    if (value === undefined) die(USAGE, `${words[i]}: no value`);
    if (name === 'subject' || name === 'server') {
      o[name] = value;
      continue;
    }
    const range = RANGES[name];
    if (range === undefined) die(USAGE, `no such option: ${words[i]}`);
    o[name] = Number(value);
    if (!/^\d+$/.test(value) || o[name] < range[0] || o[name] > range[1])
      die(USAGE, `${words[i]}: a number between ${range[0]} and ${range[1]}, not ${value}`);
  }
  if (o.payload % 16 !== 0) die(USAGE, '--payload: a multiple of 16');
  if (o.consumers % o.processes !== 0) die(USAGE, '--consumers: a multiple of --processes');
  return o;
}

function list(what) {
  if (what === '--list') {
    const lock = new URL('./node_modules/bullmq/package.json', import.meta.url);
    const { version } = JSON.parse(readFileSync(lock, 'utf8'));
    console.log(`bullmq\t${about} ${version} on Redis, node ${process.versions.node}\t`);
    return;
  }
  for (const [name, [said, unit]] of Object.entries(WORKLOADS))
    console.log(`${name}\t${said}\t${unit}`);
}

async function main(words) {
  if (words.length === 1 && words[0].startsWith('--list')) {
    list(words[0]);
    return;
  }
  if (words.length === 0)
    die(USAGE, 'usage: bench_bullmq WORKLOAD --subject bullmq [--option VALUE]...');
  if (words[0] === 'consume') {
    await consume(parse(words.slice(1), 1));
    return;
  }
  const workload = WORKLOADS[words[0]];
  if (workload === undefined) die(USAGE, `no such workload: ${words[0]}`);
  const [, unit, jobs, run] = workload;
  const o = parse(words.slice(1), jobs);
  if (o.subject !== 'bullmq') die(USAGE, 'which --subject?');
  const line = await run(o);
  cleanUp();
  checkLine(line, o.jobs);
  printLine(line, words[0], unit);
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => die(WRONG, error instanceof Error ? error.message : String(error)),
);
