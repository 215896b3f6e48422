import { IDENTITY, EPOCH_OF, NOW } from './lua.ts';
import { save, snapshot } from './reads.ts';
import { beginWrite, change, endWrite } from './writes.ts';

/** The calls of an engine, and `hello`, which exchanges the id of a share, and says whether it has replicas (1 or 0). */
const hello = `${IDENTITY}
return { token, number, string.find(replication, 'connected_slaves:0', 1, true) and 0 or 1 }`;

/** It runs where the others are refused. KEYS: account, and nothing before. ARGV: id of a session. Replies in JSON. */
const session = `#!lua flags=no-writes,allow-oom
${NOW}${EPOCH_OF}
local revoked, stored, changedAt = unpack(redis.call('HMGET', KEYS[1], 's' .. ARGV[1], 'x', 'X'))
return cjson.encode({ isRevoked = revoked ~= false, epoch = epochOf(stored), sinceMs = sinceOf(changedAt) })`;

export const SCRIPTS = { hello, snapshot, save, beginWrite, endWrite, change, session } as const;

export type ScriptName = keyof typeof SCRIPTS;
