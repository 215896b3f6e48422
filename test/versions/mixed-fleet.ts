import { earlier } from '../http/problem.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Fleet, openFleet } from '../fleet/fleet.ts';
import type { NodeGateway, Running } from '../runtime/node-gateway.ts';
import type { Env } from '../support/world.ts';
import { type Built, builtRelease } from './release.ts';
import type { Version } from './versions.ts';

/** Instances of both versions, with one Redis. */
export class MixedFleet {
  readonly fleet: Fleet;
  readonly #release: Built;
  readonly #started: NodeGateway[] = [];

  constructor(fleet: Fleet, release: Built) {
    this.fleet = fleet;
    this.#release = release;
  }

  async start(version: Version, env: Env = {}): Promise<NodeGateway> {
    const entry = version === 'this version' ? undefined : this.#release.node;
    const started = await this.fleet.start(env, entry);
    this.#started.push(started);
    return started;
  }

  async startBoth(env: Env = {}): Promise<(version: Version) => NodeGateway> {
    const [released, ours] = await Promise.all([this.start('the last release', env), this.start('this version', env)]);
    return (version) => (version === 'this version' ? ours : released);
  }

  get complaints(): readonly string[] {
    return this.#started.flatMap(complaintsIn);
  }
}

/** Of requests whose upstream failed, of that upstream, of a Redis that keeps no file, or is late on a busy machine. */
const EXPECTED = /"msg":"(?:request|the upstream fails|the store (?:does not answer|answers again))|"NOT_PERSISTENT"/;

/** Warnings and errors. */
const complaintsIn = ({ records, stderr }: Running): readonly string[] => [
  ...records()
    .filter(({ level }) => level !== 'info')
    .map((record) => JSON.stringify(record))
    .filter((line) => !EXPECTED.test(line)),
  ...stderr().split('\n').filter(Boolean),
];

/** One for all tests of a file. The last of them is here: what its instances have said. */
export function mixedFleetOfFile(): () => MixedFleet {
  let mixed: MixedFleet | undefined;
  beforeAll(async () => {
    const [fleet, release] = await Promise.all([openFleet(), builtRelease()]);
    mixed = new MixedFleet(fleet, release);
  });
  afterAll(() => mixed?.fleet.close());
  return () => {
    if (!mixed) throw new Error('the fleet is not there yet');
    return mixed;
  };
}

/** To stand last in its file. */
export const testNoComplaint = (mixed: () => MixedFleet): void =>
  test('none of them had a complaint', () => expect(mixed().complaints).toEqual([]));

earlier.mayAnswer = true;
