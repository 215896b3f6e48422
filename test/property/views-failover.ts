import { setTimeout as sleep } from 'node:timers/promises';
import { type Random, randomOf } from './random.ts';
import { Judge, planOf } from './views.ts';
import { Pair } from './views-redis.ts';
import { act, closeMember, type Member, openMember, type Played, usualDelay } from './views-run.ts';

/** Longer than any request takes. */
const LONG_WINDOW_MS = 1_500;
/** As of every instance, unless a test says otherwise. */
const SETTLING_MS = 1_000;
const LENGTH_MS = 10_000;
const INSTANCES = 3;
const GAP_MS = 20;

/** A view may be used for so long after its last question. */
const LEASE_MS = 130;
/** What sentinels wait before they promote a replica (deploy/store). */
const DOWN_AFTER_MS = 3_000;
/** Who had no answer for so long answers from no copy. */
const SILENCE_MS = 5_000;
/** A question that is older counts as unanswered. */
const GIVE_UP_MS = 1_000;

interface Failover {
  readonly pair: Pair;
  readonly members: readonly Member[];
  readonly judge: Judge;
  readonly random: Random;
}

/** They find the new primary, each connection in its time. Some subscribe to the old one, which is its replica soon. */
async function move(moving: readonly Member[], { pair: { primary, replica }, judge, random }: Failover): Promise<void> {
  const moved = moving.map(async ({ relay, instance }) => {
    const questions = async () => {
      await sleep(random() * 300);
      relay.behind.questions = replica.port;
      relay.cut('questions');
    };
    const messages = async () => {
      await sleep(random() * 900);
      relay.behind.messages = random() < 0.2 ? primary.port : replica.port;
      relay.cut('messages');
    };
    await Promise.all([questions(), messages()]);
    judge.losing.delete(instance);
  });
  await Promise.all(moved);
}

/** The primary is cut off from its replica, with some instances on its side. */
async function cutOff(failover: Failover): Promise<void> {
  const { pair, members, random } = failover;
  const others = members.filter(() => random() < 0.4);
  await pair.replicated();
  pair.cutOff();
  await pair.untilRefused();
  await sleep(LEASE_MS + random() * 500);
  await pair.promote();
  await move(others, failover);
  await sleep(random() * 900);
  if (random() < 0.7) await pair.primary.client.replicaof('127.0.0.1', pair.replica.port);
}

/** The primary stands still, its replica is promoted, and then it goes on. */
async function standStill(failover: Failover): Promise<void> {
  const { pair, members, random } = failover;
  const others = members.filter(() => random() < 0.5);
  await pair.replicated();
  pair.cutOff(); // nobody tells it
  pair.primary.signal('SIGSTOP');
  const stopped = sleep(SILENCE_MS + GIVE_UP_MS + random() * 600).then(() => pair.primary.signal('SIGCONT'));
  await sleep(DOWN_AFTER_MS + random() * 1_000);
  await pair.promote();
  await move(others, failover);
  await stopped;
}

/** A schedule in which a replica takes the place of its primary. */
export async function playFailover(seed: number): Promise<Played> {
  const random = randomOf(~seed);
  const pair = await Pair.open(LONG_WINDOW_MS);
  const judge = new Judge(random);
  const plan = planOf(seed, { lengthMs: LENGTH_MS, mostFaults: 6, instances: INSTANCES, gapMs: GAP_MS });
  const members = await Promise.all(
    plan.rates.map((rate) =>
      openMember({
        port: pair.primary.port,
        upstream: judge.upstream,
        rate,
        windowMs: LONG_WINDOW_MS,
        settlingMs: SETTLING_MS,
        delay: usualDelay(random),
        waits: () => random() < 0.7,
      }),
    ),
  );
  const failOver = async () => {
    await sleep(500 + random() * 1_000);
    if (random() < 0.3) await pair.resync(random() * 300);
    await sleep(random() * 500);
    for (const { instance } of members) judge.losing.add(instance);
    await (random() < 0.45 ? standStill : cutOff)({ pair, members, judge, random });
  };
  await Promise.all([act(plan, members, judge), failOver()]);
  await Promise.all(members.map(closeMember));
  await pair.close();
  return judge;
}
