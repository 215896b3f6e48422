import { codeOf } from '../files.ts';

export const isReply = (error: unknown): error is Error => error instanceof Error && error.name === 'ReplyError';

/** The reasons that have no code, by how their messages begin. */
const REASONS = [
  [/max number of clients/, 'MAXCLIENTS'],
  [/ACL failure in script|user executing the script can't/, 'NOPERM'],
  [/^Socket timeout/, 'ETIMEDOUT'],
  [/^Connection is closed|^Stream isn't writeable/, 'ECONNRESET'],
  [/^Unknown RESP type/, 'EPROTO'],
] as const;

/** The system's error code, or the first word of the node's message; nothing that could be a secret. */
function reasonIn(error: unknown): string {
  // What a node says before it is asked comes within a message of ioredis.
  const message = error instanceof Error ? error.message.replace(/^Command queue.* Last error: /s, '') : '';
  const known = codeOf(error) ?? REASONS.find(([pattern]) => pattern.test(message))?.[1];
  return known ?? /^(?:ERR )?([A-Z_]{3,40})\b/.exec(message)?.[1] ?? 'UNKNOWN';
}

/** The system's codes where there was no connection, or nothing came. */
const UNREACHABLE = /^E(?!RR|PROTO)/;

/** What is wrong with the store. */
export class Trouble extends Error {
  /** A code. */
  readonly reason: string;
  /** What is so, said of `who`. */
  readonly is: string;
  readonly advice: string;
  readonly #who: string;

  /** `cause`: an error, or a code. `who`: a node or a sentinel. */
  constructor(cause: unknown, who = 'it') {
    const reason = typeof cause === 'string' ? cause : reasonIn(cause);
    super(reason);
    this.reason = reason;
    [, this.is, this.advice] = KNOWN.find(([pattern]) => pattern.test(reason)) ?? OTHER;
    this.#who = who;
  }

  static of(cause: unknown): Trouble {
    return cause instanceof Trouble ? cause : new Trouble(cause);
  }

  get isUnreachable(): boolean {
    return UNREACHABLE.test(this.reason);
  }

  get words(): string {
    return `${this.#who} ${this.is}. ${this.advice}`;
  }
}

const ONE_SIDE = 'perhaps one side alone has TLS (redis:// is without, rediss:// with)';
const OTHER = [/./, 'cannot be used', 'Its own log says more'] as const;

/** Codes of troubles, what each says of a node or a sentinel, and what to do. The first that fits counts. */
const KNOWN: readonly (readonly [reason: RegExp, is: string, advice: string])[] = [
  [/^ECONNREFUSED$/, 'does not listen', 'Is it running? Look at host and port in STORE_URL, or at what sentinels say'],
  [/^(ENOTFOUND|EAI_)/, 'has a name without an address', 'Look at the hosts in STORE_URL, and at the resolver here'],
  [/^ETIMEDOUT$/, 'does not answer', `A firewall may drop what is sent. If it does connect, ${ONE_SIDE}`],
  [/^(ECONNRESET|EPIPE)$/, 'closes connections', `Its maxclients may be reached, or ${ONE_SIDE}`],
  [/^E(HOST|NET)(UNREACH|DOWN)$/, 'cannot be reached', 'Look at the network, and at host and port in STORE_URL'],
  [/^E(MFILE|NFILE|ADDRNOTAVAIL)$/, 'gets no connection: this machine has none left', 'Raise its limits (ulimit -n)'],

  [/^CERT_(HAS_EXPIRED|NOT_YET)/, 'shows a certificate that is not valid now', 'Renew it, or set the clock here'],
  [
    /ALTNAME|HOSTNAME/,
    'shows a certificate of other names',
    'STORE_URL has to name it as its certificate does; sentinels tell names where announce-hostnames is set',
  ],
  [/_ALERT_.*VERSION$|UNSUPPORTED_PROTOCOL/, 'speaks TLS of another version', 'It has to be TLS 1.2 or later'],
  [
    /_ALERT_/,
    'does not take what it is shown in TLS',
    'STORE_CERT_FILE and STORE_KEY_FILE have to hold what an authority that it trusts has signed, valid now',
  ],
  [/^(EPROTO|ERR_)/, 'does not speak what is expected', `Is it Redis at that port? Or ${ONE_SIDE}`],
  [
    /^(CERT_|CRL_|UNABLE_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_)/,
    'shows a certificate that is not trusted',
    'STORE_CA_FILE has to hold its authority',
  ],

  [/^NOAUTH$/, 'wants a password', 'Put user:password@ before the host in STORE_URL'],
  [/^WRONGPASS$/, 'does not take the login', 'Look at user and password in STORE_URL, and whether that user is on'],
  [
    /^NOPERM$/,
    'does not let its user do what is needed',
    'Give the rights that deploy/store/users.conf names, or for sentinels deploy/store/README.md',
  ],
  [/^DENIED$/, 'is in protected mode', 'Give it a user with a password'],
  [/^MAXCLIENTS$/, 'has no room for another connection', 'Raise maxclients'],
  [
    /^NO_SENTINEL$/,
    'does not know the name behind the hosts in STORE_URL',
    'Its `sentinel monitor` says how it is called',
  ],
  [/^(READONLY|MASTERDOWN)$/, 'is a replica', 'STORE_URL is to name the primary, or the sentinels'],
  [/^NOREPLICAS$/, 'misses replicas', 'Start them, or look at min-replicas-to-write'],
  [/^(CLUSTER|CROSSSLOT|MOVED|ASK$)/, 'is a cluster', 'It has to be one node, or Sentinel'],
  [/^PROTOCOL$/, 'is used by gateways of another version', 'Stop those'],
  [/^ANOTHER_STORE$/, 'is new, was restarted or failed over', 'Purchases wait for REQUEST_TIMEOUT_MS and 5 s'],
  [/^OOM$/, 'is full', 'Raise maxmemory'],
  [/^MISCONF$/, 'cannot write to its disk', 'Make room there'],
  [/^LOADING$/, 'reads what is on its disk', 'Wait'],
  [/^BUSY$/, 'is held up by a script', 'SCRIPT KILL ends that'],
  [
    /^ERR$/,
    'does not know what it is asked',
    'Look at what follows the hosts in STORE_URL, and whether they are sentinels',
  ],

  [/^NOT_PERSISTENT$/, 'keeps nothing on disk: records end with its process', 'Set appendonly yes'],
  [/^EVICTS$/, 'evicts, and a write without its record may be sent twice', 'Set maxmemory-policy noeviction'],
  [/^FEW_MIN_REPLICAS$/, 'takes purchases when it is cut off from its replicas', 'Set min-replicas-to-write 1 or more'],
  [/^LAG$/, 'takes purchases for too long when it is cut off from its replicas', 'Set min-replicas-max-lag 1 or 2'],
  [/^FULL$/, 'uses more than three quarters of its memory: no write begins', 'Raise maxmemory'],
  [
    /^DOWN_AFTER$/,
    'may still take purchases when its sentinels replace it',
    'Set down-after-milliseconds 5000 or more',
  ],
  [
    /^HIDDEN$/,
    'does not tell what a primary does that is cut off',
    "Add '+config|get' to its user's rights, or look at min-replicas-to-write and min-replicas-max-lag",
  ],
];
