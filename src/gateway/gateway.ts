import { Cache, type ReadOptions, type ReadResult } from '../cache/read.ts';
import { GatewayError } from '../core/errors.ts';
import type { ClientRequest } from '../core/request.ts';
import type { MaybePromise } from '../core/runtime.ts';
import { UpstreamCalls } from '../resilience/call.ts';
import { addressOwner } from '../store/port.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { UpstreamCall } from '../upstream/call.ts';
import { UpstreamClient } from '../upstream/client.ts';
import { checkInput } from '../upstream/input.ts';
import { type Read, ReadRows } from '../upstream/read.ts';
import { Admission, endSession } from './admission.ts';
import type { GatewayDeps } from './deps.ts';
import { AccountSessions } from './sessions.ts';
import { Waiting } from './waiting.ts';
import { Writes } from './write.ts';

/**
 * The one way to upstream data: every route, section and batch item comes through here. `Admission` has the first step,
 * `admit`.
 */
export class Gateway extends Admission {
  readonly rows: ReadRows;
  readonly waiting: Waiting;
  readonly sessions: AccountSessions;
  readonly writes: Writes;
  readonly #cache: Cache;

  constructor(deps: GatewayDeps) {
    super(deps);
    const { config, store, table } = deps;
    this.rows = new ReadRows(table, config);
    this.waiting = new Waiting(deps);
    const calls = new UpstreamCalls({
      ...deps,
      client: new UpstreamClient(deps, this.via),
      onOutcome: (call, outcome) => {
        this.accepted.learn(call, outcome);
        endSession(store, call.request, call.account, outcome.error); // here, since nobody waits for a background call
      },
    });
    this.#cache = new Cache({
      ...deps,
      timeoutMs: config.requestTimeoutMs,
      isCircuitOpen: () => calls.isCircuitOpen,
      check(read) {
        if (table.isOfAnother(read.operation, read.id)) throw GatewayError.of('unknown_endpoint');
        checkInput(read.operation, read);
      },
      onError: (request, error) => endSession(store, request, request.account, error),
      call(read, request, how) {
        const { account, owner = addressOwner(request.address) } = request;
        return calls.make(new UpstreamCall(request, read, { account, owner, ...how }));
      },
    });
    this.sessions = new AccountSessions(this, this.rows, (...read) => this.read(...read));
    this.writes = new Writes(this, calls, this.waiting);
  }

  /** The answer from a fresh copy, without waiting; undefined if there is none, or the request wants none. */
  fresh(read: Read, request: ClientRequest, snapshot: Snapshot): ReadResult | undefined {
    return this.#cache.fresh(read, request, snapshot);
  }

  /** A GET through the cache, at once where a copy answers. @throws GatewayError */
  read(read: Read, request: ClientRequest, snapshot: Snapshot, options?: ReadOptions): MaybePromise<ReadResult> {
    return this.#cache.read(read, request, snapshot, options);
  }
}
