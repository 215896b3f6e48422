import { builtRelease } from './release.ts';

/** Before the first test, so that it is done once and no test waits for it. What fails here fails the tests that need it. */
export async function setup(): Promise<void> {
  await builtRelease().catch(() => undefined);
}
