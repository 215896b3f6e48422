export { Account } from './account.ts';
export { worker } from './serve.ts';
