import worker, { Account } from '../../src/entry/worker.ts';
import { lengthenLimits } from './longer.ts';

export { Account };

/** The worker as it is deployed, whose time of day a test moves: `/pass/600000` lets ten minutes pass. */
const { now } = Date;
let passedMs = 0;
Date.now = () => now() + passedMs;

lengthenLimits();
/** Pauses between attempts are over at once. */
Math.random = () => 0;

export default {
  fetch(...[request, ...rest]: Parameters<typeof worker.fetch>): Promise<Response> | Response {
    const ms = /\/pass\/(\d+)$/.exec(request.url)?.[1];
    if (ms === undefined) return worker.fetch(request, ...rest);
    passedMs += Number(ms);
    return new Response();
  },
};
