/** What limits count a client by: an IPv4 address, or the /64 of an IPv6 one, since one household has a whole /64. */
export function clientAt(address: string): string {
  return address.includes(':') ? prefixOf(address) : address;
}

/** `2001:db8::7` becomes `2001:db8:0:0::/64`. */
function prefixOf(address: string): string {
  const [start = '', end = ''] = address.replace(/(?<=:)\d+\.[\d.]+$/, '0:0').split('::');
  const [left, right] = [groupsOf(start), groupsOf(end)];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}

const groupsOf = (part: string) => (part === '' ? [] : part.split(':'));
