import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { freePort } from '../support/ports.ts';
import { run } from '../runtime/node-gateway.ts';
import { groups } from './file.ts';

/** What each duration of the rules becomes, so that hours pass in seconds. A sample is taken each second. */
const SHORTER: Readonly<Record<string, string>> = {
  '1m': '1s',
  '5m': '6s',
  '10m': '4s',
  '1h': '12s',
  '2h': '12s',
  '1d': '20s',
};

/** @throws Error for a duration that the table has not */
function shorter(duration: string): string {
  const short = SHORTER[duration];
  if (!short) throw new Error(`say here what ${duration} becomes`);
  return short;
}

/** The rules of the file, with nothing changed but the time that they take. */
const shortRules = () => ({
  groups: groups.map(({ name, rules }) => ({
    name,
    rules: rules.map((rule) => ({
      ...rule,
      expr: rule.expr.replaceAll(/\[(\w+)\]/g, (_, duration: string) => `[${shorter(duration)}]`),
      ...(rule.for !== undefined && { for: shorter(rule.for) }),
    })),
  })),
});

type Labels = Readonly<Record<string, string>>;

interface ActiveAlert {
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly state: 'pending' | 'firing';
}

interface Rule {
  readonly name: string;
  readonly health: string;
}

/** Prometheus, with the rules, that scrapes these listeners, each as a job of its own. */
export async function startPrometheus(jobs: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), 'portico-prometheus-'));
  const write = (name: string, value: unknown) => writeFileSync(join(folder, name), JSON.stringify(value)); // JSON is YAML
  write('rules.yaml', shortRules());
  write('prometheus.yaml', {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '500ms' },
    rule_files: ['rules.yaml'],
    scrape_configs: Object.entries(jobs).map(([job, url]) => ({
      job_name: job,
      static_configs: [{ targets: [new URL(url).host] }],
    })),
  });
  const port = await freePort();
  const options = [
    `--config.file=${folder}/prometheus.yaml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=warn',
  ];
  const running = run({ command: ['prometheus', ...options] });
  const asked = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    return ((await answer.json()) as { readonly data: T }).data;
  };
  const query = async (expr: string) => {
    const { result } = await asked<{ readonly result: readonly { readonly metric: Labels }[] }>(
      `query?query=${encodeURIComponent(expr)}`,
    );
    return result.map(({ metric }) => metric);
  };
  await vi.waitFor(() => fetch(`http://127.0.0.1:${port}/-/ready`), { timeout: 30_000, interval: 50 });
  return {
    /** The labels of the series that an expression has now. */
    query,
    alerts: async () => (await asked<{ readonly alerts: readonly ActiveAlert[] }>('alerts')).alerts,
    rules: async () =>
      (await asked<{ readonly groups: readonly { readonly rules: readonly Rule[] }[] }>('rules')).groups.flatMap(
        (group) => group.rules,
      ),
    close: async () => {
      await running.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
