import { parseArgs } from 'node:util';
import { Accounts } from '../../../src/store/accounts.ts';
import { SealedNotes } from '../../../src/store/sealed.ts';
import { MUTATIONS, type MutationName, withoutRule } from './mutations.ts';
import { NEEDLESS, NOT_SHOWN, type Rule, RULES, UNDER_LOAD } from './rules.ts';
import { play } from './schedule.ts';
import { letThrough, underLoad, WINDOW } from './steady.ts';

/**
 * Plays schedules until one fails, and tells its story: `node test/property/notes/main.ts --without late`. With
 * `--each-rule` it leaves out one rule after the other instead: each has to be needed, but for those that rules.ts names.
 */
const { values: args } = parseArgs({
  options: {
    schedules: { type: 'string', default: '3000' },
    /** Seed of the first one. */
    seed: { type: 'string', default: '1' },
    /** A rule of rules.ts or mutations.ts. */
    without: { type: 'string' },
    'each-rule': { type: 'boolean', default: false },
  },
});
const [first, count] = [Number(args.seed), Number(args.schedules)];

const isInCode = (name: string): name is MutationName => name in MUTATIONS;
const isSimulated = (name: string): name is Rule => name in RULES;
const isOneOf = (names: readonly string[], name: string) => names.includes(name);

/** The first schedule that fails. */
async function failureWithout(rule: string | undefined) {
  if (rule !== undefined && !isInCode(rule) && !isSimulated(rule)) throw new Error(`there is no rule ${rule}`);
  const tried = rule !== undefined && isInCode(rule) ? await withoutRule(rule) : { Accounts, SealedNotes };
  const without = new Set(rule !== undefined && isSimulated(rule) ? [rule] : []);
  for (let seed = first; seed < first + count; seed++) {
    const { violations, story } = await play({ seed, tried, without });
    if (violations[0]) return { seed, story, kind: violations[0].kind };
  }
  return undefined;
}

if (args['each-rule']) {
  const others = [...UNDER_LOAD, ...NOT_SHOWN];
  const rules = [...Object.keys(RULES), ...Object.keys(MUTATIONS)].filter((name) => !isOneOf(others, name));
  for (const rule of rules) {
    const failure = await failureWithout(rule);
    const isRight = isOneOf(NEEDLESS, rule) === (failure === undefined);
    if (!isRight) process.exitCode = 1;
    const found = failure ? `${failure.kind} with seed ${failure.seed}` : `nothing in ${count} schedules`;
    console.log(`${isRight ? 'as expected' : 'NOT AS EXPECTED'}: without ${rule} ${found}`);
  }
  const isStopped = (await underLoad(await withoutRule('queue'))).after === 'unavailable';
  const isExceeded = Math.max(...(await letThrough(await withoutRule('grantsCounted')))) > WINDOW.limit;
  console.log(`without queue stopped: ${isStopped}; without grantsCounted a limit exceeded: ${isExceeded}`);
  if (!isStopped || !isExceeded) process.exitCode = 1;
} else {
  const failure = await failureWithout(args.without);
  const at = failure?.story.findIndex((line) => line.includes('***')) ?? 0;
  const story = failure?.story.slice(Math.max(0, at - 40), at + 3).join('\n  ');
  console.log(failure ? `--seed ${failure.seed}\n  ${story}` : `none of ${count} schedules failed`);
  process.exitCode = failure ? 1 : 0;
}
