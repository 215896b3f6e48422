import { useMutation } from '@tanstack/react-query';
import { type Measured, measureFrom, type Place } from './distance.ts';
import type { Way } from './measure.ts';
import { Panel } from './panel.tsx';
import { Scroll } from './scroll.tsx';
import { Waterfall } from './waterfall.tsx';

interface Case {
  readonly place: Place;
  readonly way: Way;
  readonly title: string;
}

const CASES: readonly Case[] = [
  { place: 'page', way: 'five', title: 'Five calls, one origin' },
  { place: 'page', way: 'one', title: 'One overview, one origin' },
  { place: 'gateway', way: 'five', title: 'Five calls, another origin' },
  { place: 'gateway', way: 'one', title: 'One overview, another origin' },
];

type Result = Case & Measured;

/** One after the other, so that none waits for another. */
async function measureAll(): Promise<Result[]> {
  const results: Result[] = [];
  for (const one of CASES) results.push({ ...one, ...(await measureFrom(one.place, one.way)) });
  return results;
}

/** The same four things, read with five calls and with one. */
export function Comparison() {
  const { data, error, isPending, mutate } = useMutation({ mutationFn: measureAll });
  return (
    <Panel title="Five calls or one">
      <p className="small">
        Plan, card, notifications and referrals, read with the upstream’s own calls and with one overview, over a line
        of 150 ms and 1.6 Mbit/s. No copies are used, neither the browser’s nor the gateway’s.
      </p>
      <button type="button" onClick={() => isPending || mutate()} aria-disabled={isPending}>
        Load it both ways
      </button>
      <div role="status">
        {isPending && 'Loading, four times…'}
        {error && error.message}
        {data && 'All is measured.'}
      </div>
      {data && <Results results={data} />}
    </Panel>
  );
}

const whole = (number: number) => Math.round(number).toLocaleString('en');
const kilobytes = (bytes: number) => (bytes / 1000).toFixed(1);

const MEASURES: Readonly<Record<string, (result: Result) => string>> = {
  'First data, ms': ({ first }) => whole(first),
  'All data, ms': ({ all }) => whole(all),
  Requests: ({ requests }) => whole(requests),
  Preflights: ({ preflights }) => whole(preflights),
  'Sent, kB': ({ up }) => kilobytes(up),
  'Received, kB': ({ down }) => kilobytes(down),
};

function Results({ results }: { readonly results: readonly Result[] }) {
  const scale = Math.max(...results.map(({ all }) => all));
  return (
    <>
      <Scroll label="What was measured">
        <table className="measured">
          <thead>
            <tr>
              <td />
              <th scope="colgroup" colSpan={2}>
                One origin
              </th>
              <th scope="colgroup" colSpan={2}>
                Another
              </th>
            </tr>
            <tr>
              <td />
              {results.map(({ title, way }) => (
                <th key={title} scope="col" className="number">
                  {way === 'five' ? '5 calls' : '1 call'}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {Object.entries(MEASURES).map(([name, valueOf]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {results.map((result) => (
                  <td key={result.title} className="number">
                    {valueOf(result)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <p className="small">
        The distance is made by a relay between browser and gateway; the upstream is next to the gateway. It is HTTP/1.1
        without TLS, which would cost a new connection one more round trip. Bytes are those of the line, heads included.
        On one origin the page has a connection already. To another it has none, and the browser asks first whether it
        may: a preflight, on a connection of its own.
      </p>
      <details>
        <summary>Call by call</summary>
        {results.map((result) => (
          <Waterfall key={result.title} title={result.title} load={result} scale={scale} />
        ))}
      </details>
    </>
  );
}
