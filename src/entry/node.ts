import { takeSignals } from './node/signals.ts';

// Before the rest is loaded, for a signal that comes meanwhile. A host has signals of its own, so `serve` alone takes them.
takeSignals();
const { main } = await import('./node/start.ts');
void main();
