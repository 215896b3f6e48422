import { takeSignals } from './signals.ts';

// Imported first, for a signal that comes while the rest is loaded. A host has signals of its own, so `serve` alone takes them.
takeSignals();
