import { type ReactNode, useId } from 'react';

interface Props {
  readonly title: string;
  readonly isBusy?: boolean;
  /** Beside the title. */
  readonly badge?: ReactNode;
  readonly size?: 'third' | 'half' | 'wide';
  readonly children: ReactNode;
}

/** A part of the page, with its title as its name. */
export function Panel({ title, isBusy = false, badge, size = 'wide', children }: Props) {
  const id = useId();
  return (
    <section className={`panel ${size}`} aria-labelledby={id} aria-busy={isBusy}>
      <header>
        <h2 id={id} tabIndex={-1}>
          {title}
        </h2>
        {badge}
      </header>
      {children}
    </section>
  );
}
