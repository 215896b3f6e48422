import { useMutation } from '@tanstack/react-query';
import { type Bar, type Load, loadBothWays } from './measure.ts';
import { Panel } from './panel.tsx';
import { milliseconds } from './words.ts';

/** The same four things, read with five calls and with one. */
export function Waterfalls() {
  const { data, error, isPending, mutate } = useMutation({ mutationFn: loadBothWays });
  const scale = data ? Math.max(data.five.total, data.one.total) : 1;
  return (
    <Panel title="Five calls or one">
      <p className="small">
        Plan, card, notifications and referrals, read with the upstream’s own calls and with one overview. On this
        machine nothing is far away: slow the upstream down, or the network in the browser’s developer tools.
      </p>
      <button type="button" onClick={() => isPending || mutate()} aria-disabled={isPending}>
        Load it both ways
      </button>
      <div role="status">
        {isPending && 'Loading…'}
        {error && error.message}
        {data && `Five calls: ${milliseconds(data.five.total)}. One overview: ${milliseconds(data.one.total)}.`}
      </div>
      {data && <Waterfall title="Five calls" load={data.five} scale={scale} />}
      {data && <Waterfall title="One overview" load={data.one} scale={scale} />}
    </Panel>
  );
}

interface Props {
  readonly title: string;
  readonly load: Load;
  /** Milliseconds that the full width stands for. */
  readonly scale: number;
}

function Waterfall({ title, load, scale }: Props) {
  return (
    <>
      <h3>
        {title}: all there after {milliseconds(load.total)}
      </h3>
      <ol className="waterfall">
        {load.bars.map((bar) => (
          <Row key={bar.name} bar={bar} scale={scale} />
        ))}
      </ol>
    </>
  );
}

/** The numbers are text, the bar is for the eye. */
function Row({ bar: { name, start, firstByte, end }, scale }: { readonly bar: Bar; readonly scale: number }) {
  const share = (ms: number) => `${(100 * ms) / scale}%`;
  return (
    <li>
      <code>{name}</code>
      <span>
        <span className="only-read">begins after {milliseconds(start)}, takes </span>
        {milliseconds(end - start)}
      </span>
      <span className="track" aria-hidden="true">
        <span className="waits" style={{ left: share(start), width: share(firstByte - start) }} />
        <span className="receives" style={{ left: share(firstByte), width: share(end - firstByte) }} />
      </span>
    </li>
  );
}
