/** Whether `If-None-Match` names this ETag; compared weakly, as RFC 9110 section 13.1.2 has it. */
export function noneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header === etag || header.trim() === '*') return true;
  return header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag);
}

/** What the client's `Cache-Control` asks of the cache. */
export function wantsOf(cacheControl: string | undefined): 'any' | 'no-cache' | 'no-store' {
  if (cacheControl === undefined) return 'any';
  const directives = cacheControl
    .toLowerCase()
    .split(',')
    .map((directive) => directive.trim());
  if (directives.includes('no-store')) return 'no-store';
  return directives.some((directive) => /^no-cache(=|$)/.test(directive)) ? 'no-cache' : 'any';
}
