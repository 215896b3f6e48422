/** Shorter words are replaced only as whole words: a credential `a` is part of every text. */
const LONG_WORD = 8;

/** Replaces the credential, and the upstream's host in upper or lower case, in a text. */
export function concealing(credential: string | undefined, { host, hostname }: URL): (text: string) => string {
  const patterns = [host, hostname.replace(/\.$/, '')].map((word) => patternOf(word, 'gi'));
  if (credential !== undefined) patterns.unshift(patternOf(credential, 'g'));
  return (text) => patterns.reduce((rest, pattern) => rest.replaceAll(pattern, '…'), text);
}

function patternOf(word: string, flags: string): RegExp {
  const literal = word.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
  return new RegExp(word.length >= LONG_WORD ? literal : `(?<![A-Za-z0-9])${literal}(?![A-Za-z0-9])`, flags);
}
