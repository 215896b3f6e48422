import type { InProcess } from '../gateway/in-process.ts';

interface Meta {
  readonly sections: Readonly<Record<string, { readonly state: string; readonly code?: string }>>;
  readonly unchanged?: readonly string[];
}

interface Line {
  readonly section?: string;
  readonly state?: string;
  readonly code?: string;
  readonly data?: unknown;
  readonly unchanged?: true;
  readonly etag?: string;
}

interface Answer {
  readonly data: Readonly<Record<string, unknown>>;
  readonly meta: Meta;
  readonly etag: string | undefined;
}

const ofJson = (text: string, { headers }: Response): Answer => ({
  ...(JSON.parse(text) as Pick<Answer, 'data' | 'meta'>),
  etag: headers.get('etag') ?? undefined,
});

function ofLines(text: string): Answer {
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
  const named = lines.filter((line): line is Line & { section: string } => line.section !== undefined);
  const sections = Object.fromEntries(
    named.map(({ section, state = '', code }) => [section, { state, ...(code && { code }) }]),
  );
  const changed = named.filter(({ unchanged }) => !unchanged);
  const data = Object.fromEntries(changed.map(({ section, data: value = null }) => [section, value]));
  const unchanged = named.filter((line) => line.unchanged).map(({ section }) => section);
  return { data, meta: { sections, ...(unchanged.length > 0 && { unchanged }) }, etag: lines.at(-1)?.etag };
}

export type Counts = Record<'whole' | 'deltas' | 'same' | 'waits' | 'failed' | 'writes', number>;

export const noCounts = (): Counts => ({ whole: 0, deltas: 0, same: 0, waits: 0, failed: 0, writes: 0 });

/** A client of one overview, which takes what is sent into what it has. */
export class DeltaClient {
  etag: string | undefined;
  data: Readonly<Record<string, unknown>> = {};
  codes: Readonly<Record<string, string | undefined>> = {};
  readonly #path: string;
  readonly #token: string;
  readonly #counts: Counts;

  constructor(path: string, token: string, counts = noCounts()) {
    this.#path = path;
    this.#token = token;
    this.#counts = counts;
  }

  /** What it has. */
  get all() {
    const { etag, data, codes } = this;
    return { etag, data, codes };
  }

  /** One request, as lines or as JSON. Resolves with the status. */
  async ask(at: InProcess, prefer = '', lines = false): Promise<number> {
    const headers = {
      ...(this.etag !== undefined && { 'If-None-Match': this.etag }),
      ...(prefer !== '' && { Prefer: prefer }),
      ...(lines && { Accept: 'application/x-ndjson' }),
    };
    const response = await at.ask(this.#path, this.#token, { headers }, this.#token); // each from an address of its own
    const [text, { status }] = [await response.text(), response];
    if (status === 304) this.#counts.same++;
    else if (status !== 200) this.#counts.failed++;
    else {
      const { meta, data, etag } = lines ? ofLines(text) : ofJson(text, response);
      this.#counts[meta.unchanged ? 'deltas' : 'whole']++;
      this.#take(data, meta, etag);
    }
    return status;
  }

  #take(data: Answer['data'], { sections, unchanged = [] }: Meta, etag: string | undefined): void {
    const all: Answer['data'] = { ...Object.fromEntries(unchanged.map((name) => [name, this.data[name]])), ...data };
    const names = Object.keys(sections).toSorted();
    this.data = Object.fromEntries(names.map((name) => [name, all[name]]));
    this.codes = Object.fromEntries(names.map((name) => [name, sections[name]?.code]));
    this.etag = etag?.replace(/^W\//, '');
  }
}
