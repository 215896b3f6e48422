export * from './scripted-upstream.ts';
