import { Queue, Worker, checked } from './bullmq_stub.mjs';

const connection = { host: 'localhost' };
const queue = new Queue('mail', { connection });

async function send(data) {
    return data.user;
}

// BLOCK
checked({ added: 1, worked: [42] });
