import type { ReactNode } from 'react';

/** What may be wider than its place: it is scrolled there, also with the keyboard, and no word is broken. */
export function Scroll({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <div className="scroll" role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
