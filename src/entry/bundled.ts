import { compile } from './node/code-cache.ts';

/** How the bundle starts. */
compile(new URL('./gateway.cjs', import.meta.url)).run();
