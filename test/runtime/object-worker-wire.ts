/** JSON in which bytes stay bytes; what is undefined is left out, and comes back as undefined. */
export const pack = (value: unknown): string =>
  JSON.stringify({ value }, (_, part: unknown) => (part instanceof Uint8Array ? { base64: toBase64(part) } : part));

export const unpack = (text: string): unknown => {
  const { value } = JSON.parse(text, (_, part: unknown) => bytesIn(part) ?? part) as { readonly value?: unknown };
  return value;
};

function bytesIn(part: unknown): Uint8Array | undefined {
  if (typeof part !== 'object' || part === null || !('base64' in part)) return undefined;
  return Uint8Array.from(atob(String(part.base64)), (char) => char.charCodeAt(0));
}

function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
