import type { Cluster, Redis } from 'ioredis';
import { channelOf, clientOf, isCluster, type StoreAddress } from '../redis/client.ts';
import { reach, reasonOf } from '../redis/connection.ts';
import { about, type Finding } from './findings.ts';
import { nodeFindings } from './store-node.ts';
import type { Settings } from '../settings.ts';
import { rightsFindings } from './store-rights.ts';
import { tlsOf } from './way.ts';

const { good, bad } = about('store');

/** For a connection, with what is asked first. */
const CONNECT_MS = 5_000;

/** What can be said of the store that instances share; nothing where there is none. */
export async function storeFindings(settings: Settings): Promise<Finding[]> {
  if (!settings.storeUrl) return [good('STORE_URL is not set: each instance keeps its own state')];
  const address = { ...settings.storeUrl, secured: tlsOf('STORE', settings) };
  const client = clientOf(address);
  try {
    const trouble = await connected(client, address.db);
    return trouble === undefined ? await findingsOf(client, address) : [away(trouble, address)];
  } finally {
    client.disconnect();
  }
}

/** Undefined as soon as there is a connection that may be used, else the code of why there is none. */
function connected(client: Redis | Cluster, db: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    let ofNode: string | undefined;
    const fail = (error: unknown) => resolve(ofNode ?? reasonOf(error));
    client.on('node error', (error) => (ofNode = reasonOf(error)));
    client.on('error', fail);
    open(client, db).then(() => resolve(undefined), fail);
    setTimeout(resolve, CONNECT_MS, 'ETIMEDOUT');
  });
}

async function open(client: Redis | Cluster, db: number): Promise<void> {
  await client.connect();
  await reach(client);
  if (!isCluster(client) && db > 0) await client.select(db);
}

const LOOK: Readonly<Record<string, string>> = {
  WRONGPASS: 'Look at user and password in STORE_URL',
  NOAUTH: 'It wants a password: STORE_URL=redis://user:password@…',
  NO_SENTINEL: 'No sentinel answers, or none knows the name of the primary: look at both in STORE_URL',
  NO_NODE: 'No node of a cluster answers: look at the nodes in STORE_URL',
  ETIMEDOUT: 'A firewall may drop it; or one side has TLS and the other has not: redis:// or rediss://',
  ECONNREFUSED: 'Is it running? Look at host and port in STORE_URL',
};

/** How OpenSSL's and Node's codes of certificates are written. */
const OF_TLS = /CERT|LEAF_SIGNATURE|ALTNAME/;

function away(why: string, { nodes }: StoreAddress): Finding {
  const at = nodes.map(({ host, port }) => `${host}:${port}`).join(', ');
  const advice = OF_TLS.test(why) ? 'If its authority is yours, name the PEM file in STORE_CA_FILE' : LOOK[why];
  return bad(
    `${at} cannot be used (${why})`,
    advice ?? 'Look at STORE_URL, and at what that code says in docs/shared-state.md',
  );
}

async function findingsOf(client: Redis | Cluster, address: StoreAddress): Promise<Finding[]> {
  const nodes = isCluster(client) ? client.nodes('master') : [client];
  const channel = channelOf(address);
  const ofNodes = await Promise.all(nodes.map((node) => nodeFindings(node, address.kind, channel)));
  const rights = await rightsFindings(client, address, channel);
  return [...ofNodes.flat(), ...rights];
}
