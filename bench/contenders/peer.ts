import { createRequire } from 'node:module';

/** Packages of `bench/peers`, which are there once the bench has run. */
export const peer = createRequire(new URL('../peers/package.json', import.meta.url));
