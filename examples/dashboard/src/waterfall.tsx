import type { Bar, Load } from './measure.ts';
import { milliseconds } from './words.ts';

interface Props {
  readonly title: string;
  readonly load: Load;
  /** Milliseconds that the full width stands for. */
  readonly scale: number;
}

export function Waterfall({ title, load, scale }: Props) {
  return (
    <>
      <h3>
        {title}: {milliseconds(load.all)}
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
