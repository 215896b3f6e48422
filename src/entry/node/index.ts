export { serve } from './listen.ts';
export { fromEnv } from './runtime.ts';
