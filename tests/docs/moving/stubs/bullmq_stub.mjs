// Has of BullMQ what docs/moving/bullmq.md shows: a queue and a worker that know the names of their
// options, and the worker is given what was added.
const ADD = {
    delay: 'number',
    attempts: 'number',
    backoff: { type: 'string', delay: 'number' },
    deduplication: { id: 'string', ttl: 'number' },
};
const WORKER = { connection: { host: 'string' }, concurrency: 'number' };
const jobs = [];
const worked = [];

function look(options, known, where) {
    for (const [name, value] of Object.entries(options)) {
        const kind = known[name];

        if (kind === undefined) {
            throw new Error(`${where} has no option ${name}`);
        }
        if (typeof kind === 'object') {
            look(value, kind, `${where}.${name}`);
        } else if (typeof value !== kind) {
            throw new Error(`${where}.${name} is a ${kind}`);
        }
    }
}

export class Queue {
    constructor(name, options) {
        look(options, { connection: WORKER.connection }, 'Queue');
    }

    async add(name, data, options) {
        look(options, ADD, 'add');
        jobs.push({ name, data });
    }
}

export class Worker {
    constructor(name, handler, options) {
        look(options, WORKER, 'Worker');
        this.done = Promise.all(jobs.map(handler)).then(answers => worked.push(...answers));
        Worker.last = this;
    }
}

export async function checked(wanted) {
    await Worker.last.done;
    const got = JSON.stringify({ added: jobs.length, worked });

    if (got !== JSON.stringify(wanted)) {
        throw new Error(got);
    }
}
