import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The ports of those who have a connection to `port` that is this process's. By what Linux says. */
export function peersOf(pid: number, port: number): ReadonlySet<number> {
  const inodes = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => inodeOf(`/proc/${pid}/fd/${fd}`)));
  const rows = readFileSync(`/proc/${pid}/net/tcp`, 'latin1').split('\n').slice(1);
  const ours = rows.map((row) => row.trim().split(/\s+/)).filter(([, local, , , , , , , , inode = '']) => portIn(local) === port && inodes.has(inode)); // prettier-ignore
  return new Set(ours.map(([, , remote]) => portIn(remote)));
}

function inodeOf(link: string): string | undefined {
  try {
    return /^socket:\[(\d+)\]/.exec(readlinkSync(link))?.[1];
  } catch {
    return undefined; // closed meanwhile
  }
}

const portIn = (address = '') => Number.parseInt(address.slice(address.indexOf(':') + 1), 16);
