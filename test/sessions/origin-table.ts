export const SITES = [undefined, 'same-origin', 'same-site', 'cross-site', 'none', 'anything'] as const;
export const ORIGINS = ['absent', 'own', 'listed', 'other listed', 'foreign', 'null'] as const;
export const METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'] as const;

export type Site = (typeof SITES)[number];
export type Origin = (typeof ORIGINS)[number];

/** Line by line what section 8 of the contract says, without a look at the code. */
export function passes(method: string, site: Site, origin: Origin): boolean {
  const isRead = method === 'GET' || method === 'HEAD';
  const isListed = origin === 'listed' || origin === 'other listed';
  if (origin === 'null') return false; // `Origin: null` never passes
  if (site === 'same-origin') return true;
  if (site === 'same-site' || site === 'cross-site') return isListed;
  if (site === 'none') return isRead;
  if (site === undefined) return origin === 'own' || isListed || (origin === 'absent' && isRead);
  return false; // else 403
}
