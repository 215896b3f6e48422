import type { Plugin } from 'esbuild';

/** Leaves out zod's messages in all other languages, which are half of its size. */
export const onlyEnglish: Plugin = {
  name: 'only English',
  setup(build) {
    build.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
    }));
  },
};
