export { type ClientOptions, createClient, type Portico } from './client.ts';
export { type Copies, type CopiesOptions, type CopyStore, keepCopies } from './copies.ts';
export type * from './openapi.ts';
export { type Before, type Outcome, outcomeOf } from './purchases.ts';
export { each, readBatch, streamOverview, touches } from './reads.ts';
export type { Retry } from './send.ts';
export type * from './types.ts';
export { watchOverview, type WatchOptions } from './watch.ts';
export { type FieldError, PorticoProblem } from './wire.ts';
