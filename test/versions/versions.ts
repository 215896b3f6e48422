export type Version = 'the last release' | 'this version';

/** Which of them begins, and which goes on. */
export const DIRECTIONS: readonly (readonly [Version, Version])[] = [
  ['the last release', 'this version'],
  ['this version', 'the last release'],
];
