/** Short words are taken out only where they stand alone: a credential `a` is in every text. */
const LONG_WORD = 8;

/** Takes the credential as it is written, and the upstream's host in any case of letters, out of a text. */
export function concealing(credential: string | undefined, { host, hostname }: URL): (text: string) => string {
  const patterns = [host, hostname.replace(/\.$/, '')].map((word) => patternOf(word, 'gi'));
  if (credential !== undefined) patterns.unshift(patternOf(credential, 'g'));
  return (text) => patterns.reduce((rest, pattern) => rest.replaceAll(pattern, '…'), text);
}

function patternOf(word: string, flags: string): RegExp {
  const literal = word.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
  return new RegExp(word.length >= LONG_WORD ? literal : `(?<![A-Za-z0-9])${literal}(?![A-Za-z0-9])`, flags);
}
