import { execFile } from 'node:child_process';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { percentile } from './client.ts';

export interface FleetLoad {
  /** Of the instances; connections take turns. */
  readonly urls: readonly string[];
  readonly path: string;
  readonly accounts: number;
  readonly connections: number;
  /** 0: every account once. */
  readonly seconds: number;
}

export interface FleetLoadResult {
  /** Answers a second. */
  readonly rate: number;
  readonly answers: number;
  readonly p50: number;
  readonly p99: number;
  readonly failed: number;
  /** Head and body of an answer. */
  readonly bytes: number;
}

const run = promisify(execFile);

/** Reads of many accounts, in a process and on a core of its own: each connection asks again once it is answered. */
export async function fleetLoad(load: FleetLoad, core: number): Promise<FleetLoadResult> {
  const script = new URL(import.meta.url).pathname;
  const args = ['-c', String(core), process.execPath, script, JSON.stringify(load)];
  return JSON.parse((await run('taskset', args)).stdout) as FleetLoadResult;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const NOTHING: Buffer = Buffer.alloc(0);

/** The status, once the answer is there as long as it says to be. */
function wholeAnswer(bytes: Buffer): number | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return undefined;
  const head = bytes.toString('latin1', 0, end);
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1]); // an answer without one is never whole
  return bytes.length >= end + HEAD_END.length + length ? Number(head.slice(9, 12)) : undefined;
}

async function drive({ urls, path, accounts, connections, seconds }: FleetLoad): Promise<FleetLoadResult> {
  const requests = Array.from({ length: accounts }, (_, i) =>
    Buffer.from(`GET ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Token bench-key-${i}\r\n\r\n`),
  );
  const times: number[] = [];
  let failed = 0;
  let received = 0;
  const begunAt = performance.now();
  const endsAt = begunAt + seconds * 1_000;
  const share = Math.ceil(accounts / connections);
  const isOver = (sent: number) => (seconds === 0 ? sent >= share : performance.now() >= endsAt);

  const one = (place: number) =>
    new Promise<void>((resolve, reject) => {
      const { port } = new URL(urls[place % urls.length] ?? '');
      const socket = connect({ port: Number(port), host: '127.0.0.1', noDelay: true });
      let [sent, sentAt, bytes] = [0, 0, NOTHING];
      const send = () => {
        sentAt = performance.now();
        socket.write(requests[(place * share + sent++) % accounts] ?? NOTHING);
      };
      socket.on('data', (chunk) => {
        bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
        const status = wholeAnswer(bytes);
        if (status === undefined) return;
        received += bytes.length;
        bytes = NOTHING;
        times.push(performance.now() - sentAt);
        if (status !== 200) failed++;
        if (!isOver(sent)) send();
        else resolve(void socket.destroy());
      });
      socket.on('error', reject);
      socket.on('close', () => reject(new Error('an instance hung up')));
      send();
    });
  await Promise.all(Array.from({ length: connections }, (_, place) => one(place)));
  const rate = times.length / ((performance.now() - begunAt) / 1_000);
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)];
  return { rate, answers: times.length, p50, p99, failed, bytes: received / times.length };
}

if (import.meta.main) console.log(JSON.stringify(await drive(JSON.parse(process.argv[2] ?? '') as FleetLoad)));
