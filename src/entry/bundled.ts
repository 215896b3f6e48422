import { compile } from './node/code-cache.ts';

/** As in `engines` of package.json. */
const NEEDED = '24.11';

/** How the bundle starts. An older Node would end with a stack instead. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const [neededMajor = 0, neededMinor = 0] = NEEDED.split('.').map(Number);
if (major < neededMajor || (major === neededMajor && minor < neededMinor)) {
  console.error(`Portico needs Node ${NEEDED} or newer. This is ${process.version}.`);
  process.exit(1);
}
compile(new URL('./gateway.cjs', import.meta.url)).run();
