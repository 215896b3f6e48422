import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What a relay adds to each round trip. */
interface Distance {
  readonly ms: number;
  /** So much more or less of it, at random. */
  readonly jitterMs?: number;
}

/** Stands before a server on this machine, and makes the way to it longer, or cuts it. */
export interface Relay {
  readonly port: number;
  distance: Distance;
  /** Where new connections lead. */
  behind: number;
  /** Ends all connections, and refuses new ones until it is mended. */
  cut(): void;
  mend(): void;
  /** Ends all connections; new ones may come. */
  hangUp(): void;
  close(): Promise<void>;
}

const TICK_MS = 0.5;

export async function startRelay(behind: number): Promise<Relay> {
  const open = new Set<Socket>();
  let isCut = false;
  const server = createServer({ noDelay: true }, (from) => {
    if (isCut) {
      from.destroy();
      return;
    }
    const to = connect({ port: relay.behind, host: '127.0.0.1', noDelay: true });
    for (const socket of [from, to]) {
      open.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => open.delete(socket));
    }
    passOn(from, to);
    passOn(to, from);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  /** Half of the way in each direction. Timers may swap places, what passes may not. */
  function passOn(from: Socket, to: Socket): void {
    const under: { readonly at: number; readonly act: () => void }[] = [];
    const arrive = () => {
      while (under[0] && under[0].at <= performance.now() + TICK_MS) under.shift()?.act();
      if (under[0]) setTimeout(arrive, Math.max(0, under[0].at - performance.now()));
    };
    const later = (act: () => void) => {
      const { ms, jitterMs = 0 } = relay.distance;
      const at = performance.now() + ms / 2 + (Math.random() - 0.5) * jitterMs; // so much more or less in both together
      under.push({ at, act });
      if (under.length === 1) arrive();
    };
    from.on('data', (chunk) => later(() => void (to.destroyed || to.write(chunk))));
    from.once('close', () => later(() => void to.destroy()));
  }

  const hangUp = () => {
    for (const socket of open) socket.destroy();
  };
  const relay = {
    port: (server.address() as AddressInfo).port,
    distance: { ms: 0 } as Distance,
    behind,
    hangUp,
    cut() {
      isCut = true;
      hangUp();
    },
    mend() {
      isCut = false;
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      hangUp();
      await closed;
    },
  };
  return relay;
}
