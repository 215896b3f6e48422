/** Sixteen digits in a row: with fewer, every integer is exact. */
const MAY_ROUND = /\d{16}/;

/** What `JSON.parse` gives, but for integers that JavaScript would round: they stay text. */
export function valueOf(text: string): unknown {
  return MAY_ROUND.test(text) ? (JSON.parse(text, exact) as unknown) : (JSON.parse(text) as unknown);
}

/** `source` is the text of a number (ECMAScript, JSON.parse source text access). */
function exact(_name: string, value: unknown, { source }: { readonly source?: string } = {}): unknown {
  const isRounded = typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? '');
  return isRounded ? source : value;
}
