// fill_bullmq.mjs - fill the Redis at 127.0.0.1:PORT as programs with BullMQ do: jobs in every
// state, and one that a worker has when it dies.
//
//     npm install bullmq@6.7.0 ioredis && node fill_bullmq.mjs PORT
import { Queue, UnrecoverableError, Worker } from 'bullmq';

const connection = { host: '127.0.0.1', port: Number(process.argv[2]) };
const queue = new Queue('mail', { connection });
const wait = ms => new Promise(resolve => setTimeout(resolve, ms));
const until = year => Date.UTC(year, 11, 1, 8) - Date.now();

await queue.add('fail', { try: 'fails' }, { jobId: 'fails', attempts: 5,
    backoff: { type: 'exponential', delay: 10 * 365 * 24 * 3600 * 1000 } });
await queue.add('skip', { try: 'gives up' }, { jobId: 'gives-up', attempts: 5 });
await queue.add('last', { try: 'its last' }, { jobId: 'last' });
await queue.add('done', { try: 'is done' }, { jobId: 'done' });
await queue.add('hang', { try: 'hangs' }, { jobId: 'hangs', attempts: 3 });
const worker = new Worker('mail', async job => {
    switch (job.name) {
    case 'fail': throw new Error('no such host: "mail"');
    case 'skip': throw new UnrecoverableError('a broken address');
    case 'last': throw new Error('out of luck, and of words to say how far out of luck that is');
    case 'hang': await new Promise(() => {});
    }
}, { connection, concurrency: 5 });
worker.on('error', () => {});
await wait(3000);
await worker.pause(true);

await queue.add('welcome', { to: 'first' });
await queue.add('welcome', { to: 'Jürgen "J" \u0000 \u{1f600}' }, { attempts: 4,
    backoff: { type: 'fixed', delay: 1500 } });
await queue.add('later', { at: 2031 }, { jobId: 'later', delay: until(2031), attempts: 3,
    backoff: 250, deduplication: { id: 'user 42' } });
await queue.add('later', 'text', { jobId: 'later-2', delay: until(2031) });
await queue.add('urgent', { priority: 1 }, { priority: 1 });
await queue.add('less', { priority: 300 }, { priority: 300 });
await queue.add('own', {}, { jobId: 'own', attempts: 2, backoff: { type: 'fibonacci' } });
await queue.upsertJobScheduler('nightly', { pattern: '0 3 1 1 *' },
    { name: 'nightly', data: { every: 'year' } });
process.exit(0);
