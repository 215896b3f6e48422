/** What the client uses of what is global. Not every runtime has all of it. */
export interface Globals {
  readonly Date: Pick<DateConstructor, 'now'>;
  readonly Math: Pick<Math, 'random'>;
  readonly fetch: typeof globalThis.fetch;
  readonly crypto?: { readonly randomUUID?: (() => string) | undefined } | undefined;
  readonly document?: (EventTarget & { readonly visibilityState?: string }) | undefined;
  readonly navigator?: { readonly onLine?: boolean } | undefined;
  readonly addEventListener?: EventTarget['addEventListener'] | undefined;
  readonly removeEventListener?: EventTarget['removeEventListener'] | undefined;
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}
