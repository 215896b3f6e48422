/** Bytes that V8 takes for a string: one a character, two as soon as one is beyond Latin-1. */
export function sizeOf(text: string): number {
  // oxlint-disable-next-line no-control-regex
  return /[^\u0000-\u00ff]/.test(text) ? text.length * 2 : text.length;
}
