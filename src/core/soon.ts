/** A value, or a promise of one that is not there yet. What is there costs neither a promise nor a turn. */
export type Soon<T> = T | Promise<T>;

/** Goes on with the value, at once if it is there. */
export function andThen<T, U>(value: Soon<T>, next: (value: T) => Soon<U>): Soon<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** All of them, at once if all are there. */
export function allOf<K, V>(values: ReadonlyMap<K, Soon<V>>): Soon<ReadonlyMap<K, V>> {
  for (const value of values.values()) if (value instanceof Promise) return awaited(values);
  return values as ReadonlyMap<K, V>;
}

async function awaited<K, V>(values: ReadonlyMap<K, Soon<V>>): Promise<ReadonlyMap<K, V>> {
  return new Map(await Promise.all(Array.from(values, async ([key, value]) => [key, await value] as const)));
}
