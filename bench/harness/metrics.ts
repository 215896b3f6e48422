/** One look at a gateway's metrics. */
export class Metrics {
  readonly #lines: readonly string[];

  constructor(text: string) {
    this.#lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  }

  /** The sum of a metric's series, of those whose labels hold `label`. */
  sum(name: string, label = ''): number {
    const series = this.#lines.filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    if (series.length === 0) throw new Error(`there is no metric ${name}`);
    const wanted = series.filter((line) => line.includes(label));
    return wanted.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }
}

/** Of an admin listener. */
export async function scrape(adminUrl: string): Promise<Metrics> {
  const answer = await fetch(`${adminUrl}/metrics`);
  if (!answer.ok) throw new Error(`/metrics answered ${answer.status}`);
  return new Metrics(await answer.text());
}
