import { cut, itemsOf, membersOf } from './json.ts';

/**
 * One text for all JSON texts that mean the same: members by name, no space, strings escaped in one way. Numbers stay
 * as they are written, since parsing would make one of two that differ.
 */
export function canonical(text: string): string {
  const value = text.trim();
  if (value.startsWith('{')) return `{${membersIn(value).join(',')}}`;
  if (value.startsWith('[')) return `[${Array.from(itemsOf(value), (item) => canonical(cut(value, item))).join(',')}]`;
  return value.startsWith('"') ? JSON.stringify(JSON.parse(value)) : value;
}

function membersIn(object: string): string[] {
  const members = Array.from(membersOf(object), (member) => [JSON.stringify(member.name), member] as const);
  const sorted = members.toSorted(([one], [other]) => (one < other ? -1 : 1));
  return sorted.map(([name, member]) => `${name}:${canonical(cut(object, member))}`);
}
