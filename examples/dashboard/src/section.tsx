import type { ReactNode } from 'react';
import { announce } from './announcer.tsx';
import { Failure } from './failure.tsx';
import type { SectionState } from './overview.ts';
import { Panel } from './panel.tsx';
import { Skeleton } from './skeleton.tsx';
import { milliseconds } from './words.ts';

interface Props<T> {
  readonly title: string;
  readonly size: 'third' | 'half';
  readonly state: SectionState<T>;
  readonly onRetry: () => Promise<void>;
  readonly children: (data: T) => ReactNode;
}

/** The place of a section of the overview. It is there from the start, whatever comes. */
export function Section<T>({ title, size, state, onRetry, children }: Props<T>) {
  const { data, trouble, isWaiting } = state;

  async function retry() {
    await onRetry();
    announce(`${title}: read again.`);
  }

  return (
    <Panel title={title} size={size} isBusy={isWaiting} badge={<Badge state={state} />}>
      {trouble && <Failure trouble={trouble} onRetry={retry} />}
      {isWaiting && data === undefined && <Skeleton />}
      {data !== undefined && children(data)}
    </Panel>
  );
}

/** How the section came. */
function Badge({ state: { isWaiting, isStale, age, trouble, afterMs } }: { readonly state: SectionState<unknown> }) {
  if (isWaiting) return <span className="badge">Reading…</span>;
  if (trouble) return <span className="badge bad">Not there</span>;
  if (isStale) return <span className="badge old">Older copy{age === undefined ? '' : `, ${age} s old`}</span>;
  return afterMs === undefined ? null : <span className="badge">after {milliseconds(afterMs)}</span>;
}
