import type { ReactNode } from 'react';
import { announce } from './announcer.tsx';
import { Failure } from './failure.tsx';
import { Panel } from './panel.tsx';
import { isOld, type SectionState } from './sections.ts';
import { Skeleton } from './skeleton.tsx';
import { clock, milliseconds } from './words.ts';

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
    <Panel title={title} size={size} isBusy={isWaiting} isOld={isOld(state)} badge={<Badge state={state} />}>
      {trouble && data === undefined && <Failure trouble={trouble} onRetry={retry} />}
      {isWaiting && data === undefined && <Skeleton />}
      {data !== undefined && children(data)}
    </Panel>
  );
}

/** How the section came. */
function Badge({ state }: { readonly state: SectionState<unknown> }) {
  const { isWaiting, trouble, at, afterMs } = state;
  if (isWaiting) return <span className="badge">Reading…</span>;
  if (isOld(state) && at !== undefined) return <span className="badge stale">as of {clock(at)}</span>;
  if (trouble) return <span className="badge bad">Not there</span>;
  return afterMs === undefined ? null : <span className="badge">after {milliseconds(afterMs)}</span>;
}
