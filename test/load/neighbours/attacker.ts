import { Client } from '../support/client.ts';
import { ATTACKERS, attacks, ONE_ADDRESS } from './attacks.ts';

/**
 * Attacks the gateway at the given URL in a process of its own, at the rate that the last message has named. Answers each
 * with what it has sent and what came of it. Prints the URL once it is ready.
 */
const [, , url = '', name = ''] = process.argv;

interface Told {
  /** Requests a second. */
  readonly rate: number;
}

const MAX_IN_FLIGHT = 1_024;
const TICK_MS = 5;
/** What was not sent in this time is not sent any more: it costs half a core at all times, not now and then all of it. */
const LATE_SECONDS = 0.1;

const attack = attacks.find((one) => one.name === name);
if (!attack) throw new Error(`there is no attack ${name}`);
const { who, what, isKeyed } = attack;
const client = new Client(url, MAX_IN_FLIGHT);
const statuses: Record<string, number> = {};
let [rate, due, sent, lastAt] = [0, 0, 0, performance.now()];

function send(): void {
  const place = sent++;
  const { account, address } = who(place);
  const headers = {
    'X-Forwarded-For': address,
    ...what(place).headers,
    ...(isKeyed && { 'Idempotency-Key': `attack-${place}` }),
  };
  const wanted = { ...what(place), ...(account !== undefined && { account }), headers };
  void client.send(wanted).then(({ status }) => count(String(status)));
}

const count = (outcome: string) => (statuses[outcome] = (statuses[outcome] ?? 0) + 1);

function tick(): void {
  const now = performance.now();
  due = Math.min(due + ((now - lastAt) / 1_000) * rate, Math.max(1, LATE_SECONDS * rate));
  lastAt = now;
  for (; due >= 1 && client.inFlight < MAX_IN_FLIGHT; due--) send();
}

// The upstream has accepted them.
for (const account of ATTACKERS)
  await client.send({ path: '/api/v2/subscription/', account, headers: { 'X-Forwarded-For': ONE_ADDRESS } });
process.on('disconnect', () => process.exit(0));
process.on('message', (told: Told) => {
  rate = told.rate;
  process.send?.({ sent, statuses });
});
setInterval(tick, TICK_MS);
console.log(url);
