// The private redis-server, with the same options as that of libdue's cells, and the end of a cell.

import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

// Exit statuses.
export const WRONG = 1; // the outcome
export const USAGE = 2;
export const CANNOT = 3;

const children = [];
let server;
let folder;

export function die(status, text) {
  console.error(`bench: ${text}`);
  cleanUp();
  process.exit(status);
}

// A process that is killed when the cell ends.
export function child(program, words, options) {
  const one = spawn(program, words, options);
  one.on('error', (error) => die(WRONG, error.message));
  children.push(one);
  return one;
}

export function cleanUp() {
  for (const one of children) one.kill('SIGKILL');
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
}

export function nap(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function installed(program) {
  return (process.env.PATH ?? '').split(delimiter).some((place) => {
    try {
      accessSync(join(place, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

// Answers the path of its socket.
export async function startServer() {
  if (!installed('redis-server')) die(CANNOT, 'redis-server is not installed');
  folder = mkdtempSync(join(tmpdir(), 'due_redis_'));
  const socket = join(folder, 'redis.sock');
  server = child('redis-server', ['--port', '0', '--save', '', '--appendonly', 'no',
    '--unixsocket', socket, '--dir', folder], { stdio: 'ignore' });
  for (let i = 0; i < 4000; i++) {
    if (existsSync(socket)) return socket;
    await nap(5);
  }
  return die(WRONG, 'redis-server does not answer');
}

// The processor time of its main thread; below 0: not known.
export function serverSeconds() {
  try {
    return Number(readFileSync(`/proc/${server.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e9;
  } catch {
    return -1;
  }
}
