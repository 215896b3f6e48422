import { type ReactNode, useId } from 'react';

interface Props {
  readonly title: string;
  readonly isBusy?: boolean;
  /** What is shown is no longer known to hold. */
  readonly isOld?: boolean;
  /** Beside the title. */
  readonly badge?: ReactNode;
  readonly size?: 'third' | 'half' | 'wide';
  /** It is hidden until a `DrawerButton` for this id is pressed. The browser closes it, by Escape too. */
  readonly drawer?: string;
  readonly children: ReactNode;
}

/** A part of the page, with its title as its name. */
export function Panel({ title, isBusy = false, isOld = false, badge, size = 'wide', drawer, children }: Props) {
  const id = useId();
  const hiding = drawer === undefined ? {} : ({ id: drawer, popover: 'auto' } as const);
  return (
    <section className={`panel ${size}${isOld ? ' old' : ''}`} aria-labelledby={id} aria-busy={isBusy} {...hiding}>
      <header>
        <h2 id={id} tabIndex={-1}>
          {title}
        </h2>
        {badge}
        {drawer !== undefined && (
          <button type="button" popoverTarget={drawer} popoverTargetAction="hide">
            Close
          </button>
        )}
      </header>
      {children}
    </section>
  );
}

export function DrawerButton({ drawer, children }: { readonly drawer: string; readonly children: ReactNode }) {
  return (
    <button type="button" popoverTarget={drawer}>
      {children}
    </button>
  );
}
