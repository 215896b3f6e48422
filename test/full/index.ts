import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * `npm run test:full`: what takes longer than `npm test` may, or needs programs that a bare machine does not have. Needs
 * redis-server, haproxy, nginx, systemd-analyze, chromium and promtool. `npm run test:full -- chaos` runs the steps with
 * that word in their names; `SEED=7` has random numbers begin elsewhere.
 */
const scratch = mkdtempSync(join(tmpdir(), 'portico-full-'));

/** Where random numbers begin: elsewhere than in `npm test`, and in the same place every time. */
const SEED = process.env['SEED'] ?? '100000';

/** The unit's program may be elsewhere here. */
const unit = join(scratch, 'portico.service');
writeFileSync(
  unit,
  readFileSync('deploy/systemd/portico.service', 'utf8').replaceAll('/usr/bin/node', process.execPath),
);

const load = (...args: string[]) => ['node', 'test/full/load/index.ts', ...args];
const model = (...args: string[]) => ['node', 'test/rules/notes/main.ts', ...args];

const nginx = (...args: string[]) => {
  const apart = ['-t', '-q', '-e', 'stderr', '-g', `pid ${scratch}/nginx.pid;`, '-p', scratch];
  return ['nginx', ...apart, ...args];
};

/** Those that try what is random; the model of notes has a step of its own. */
const random = globSync('test/{rules,contract,client}/**/*.test.ts', { exclude: ['test/rules/notes/**'] }).filter(
  (file) => /support\/times\.ts|\/texts\.ts/.test(readFileSync(file, 'utf8')),
);

const STEPS: Readonly<Record<string, readonly string[]>> = {
  'browser, package, failover': ['vitest', 'run', '--config', 'vitest.full.config.ts'],
  'ten times as many random runs, from another beginning': ['vitest', 'run', '--testTimeout', '600000', ...random],
  'the model of notes: ten thousand schedules': model('--schedules', '10000', '--seed', SEED),
  'types that openapi-typescript makes, and the packed client': ['node', 'scripts/check-clients.ts'],
  'import: rows of three documents of others': ['node', 'test/full/import/index.ts'],
  'mcp: what the conformance suite of the protocol asks of any server': ['node', 'test/full/mcp/index.ts'],
  'the first steps of the README': ['node', 'scripts/outside.ts'],
  'the site': ['npm', 'run', 'docs'],
  'npm run build': ['npm', 'run', 'build'],
  'the bundle starts, answers and stops': ['npm', 'run', 'smoke'],
  'the worker and the client are small': ['npm', 'run', 'size'],
  'wrangler deploy --dry-run': ['wrangler', 'deploy', '--dry-run', '--outdir', join(scratch, 'worker')],
  'alerts fire when they should': ['promtool', 'test', 'rules', 'deploy/prometheus/alerts.test.yaml'],
  'the configuration of Prometheus': ['promtool', 'check', 'config', 'deploy/compose/prometheus.yaml'],
  'the configuration of HAProxy': ['haproxy', '-c', '-f', 'deploy/compose/haproxy.cfg'],
  'the configuration of nginx': nginx('-c', join(process.cwd(), 'deploy/nginx/nginx.conf')),
  'the systemd unit': ['systemd-analyze', 'verify', unit],
  'chaos: nobody reads what is old, or pays twice, while everything breaks': load('chaos', '--minutes', '1'),
  'soak: memory stands still under everything': load('soak', '--minutes', '1', '--keys', '40000'),
};

const env = { ...process.env, TIMES: '10', SEED };
const wanted = process.argv.slice(2).join(' ');
const failed: string[] = [];
let passed = 0;

for (const [name, [program = '', ...args]] of Object.entries(STEPS)) {
  if (!name.includes(wanted)) continue;
  console.log(`\n== ${name} (SEED=${env.SEED})`);
  const started = Date.now();
  const { status, error } = spawnSync(program, args, { stdio: 'inherit', env });
  if (error) console.error(error.message);
  console.log(`${name}: ${Math.round((Date.now() - started) / 1000)} s`);
  if (status === 0) passed++;
  else failed.push(name);
}

rmSync(scratch, { recursive: true, force: true });
const lines = failed.map((name) => `FAILED: ${name}`);
mkdirSync('test-output', { recursive: true });
writeFileSync('test-output/full-results', `${[`${passed} ${failed.length}`, ...lines].join('\n')}\n`);
for (const line of lines) console.log(line);
console.log(`${passed} passed, ${failed.length} failed`);
process.exitCode = failed.length === 0 && passed > 0 ? 0 : 1; // words that no step has are a mistake
