import { setTimeout as sleep } from 'node:timers/promises';

const EVERY_MS = 1_000;

/** Looks at an admin listener's counters, again and again: none may go down. */
export class Counters {
  readonly fallen: string[] = [];
  scrapes = 0;
  readonly #admin: string;
  #last: ReadonlyMap<string, number> = new Map();
  #isOver = false;

  constructor(admin: string) {
    this.#admin = admin;
  }

  async run(): Promise<void> {
    for (; !this.#isOver; await sleep(EVERY_MS)) await this.#look();
    await this.#look();
  }

  end(): void {
    this.#isOver = true;
  }

  /** By the series' name and labels. */
  valueOf = (series: string) => this.#last.get(series);

  async #look(): Promise<void> {
    const answer = await fetch(`${this.#admin}/metrics`);
    const now = countersIn(await answer.text());
    for (const [series, value] of this.#last) {
      const next = now.get(series);
      if (next === undefined || next < value) this.fallen.push(`${series}: ${value}, then ${next}`);
    }
    this.#last = now;
    this.scrapes++;
  }
}

/** The series of all metrics that only grow. */
function countersIn(text: string): ReadonlyMap<string, number> {
  const counters = new Map<string, number>();
  let grows = false;
  for (const line of text.split('\n')) {
    if (line.startsWith('# TYPE ')) grows = /(counter|histogram|summary)$/.test(line);
    else if (grows && line !== '' && !line.startsWith('#')) {
      const end = line.lastIndexOf(' ');
      counters.set(line.slice(0, end), Number(line.slice(end + 1)));
    }
  }
  return counters;
}
