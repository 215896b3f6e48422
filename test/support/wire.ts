/** JSON in which bytes stay bytes, and what is undefined comes back as undefined, in arrays too; nothing here is null. */
export const pack = (value: unknown): string =>
  JSON.stringify({ value }, function (this: Readonly<Record<string, unknown>>, name, part: unknown) {
    const bytes = this[name]; // a Buffer has been made something else of by now
    return bytes instanceof Uint8Array ? { base64: toBase64(bytes) } : part;
  });

export const unpack = (text: string): unknown => {
  const { value } = JSON.parse(text, (_, part: unknown) => revived(part)) as { readonly value?: unknown };
  return value;
};

function revived(part: unknown): unknown {
  // What is revived as undefined is deleted, and leaves a hole in an array.
  if (Array.isArray(part)) return Array.from(part as readonly unknown[]);
  if (typeof part !== 'object' || part === null) return part ?? undefined;
  return 'base64' in part ? Uint8Array.from(atob(String(part.base64)), (char) => char.charCodeAt(0)) : part;
}

function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
