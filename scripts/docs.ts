import { spawn } from 'node:child_process';
import { installIn } from './install.ts';

// Builds the site of docs/; `npm run docs -- dev` serves it and follows every change. What it needs is installed for it
// alone.

const site = new URL('../docs/.vitepress/', import.meta.url).pathname;
installIn(site);
const [command = 'build', ...args] = process.argv.slice(2);
const vitepress = [`${site}node_modules/vitepress/bin/vitepress.js`, command, 'docs', ...args];
// In the root of the repository, where VitePress lets the pages find Vue.
const root = new URL('../', import.meta.url).pathname;
const running = spawn(process.execPath, vitepress, { cwd: root, stdio: 'inherit' });
process.on('SIGINT', () => undefined); // Ctrl+C reaches it as well
process.once('SIGTERM', () => running.kill());
running.once('exit', (code) => {
  process.exitCode = code ?? 0;
});
