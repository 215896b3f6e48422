/** A value, or a promise of one that is not there yet. What is there costs neither a promise nor a turn. */
export type Soon<T> = T | Promise<T>;

/** Goes on with the value, at once if it is there. */
export function andThen<T, U>(value: Soon<T>, next: (value: T) => Soon<U>): Soon<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** All of them, at once if all are there. */
export function allOf<T>(values: readonly Soon<T>[]): Soon<readonly T[]> {
  const isThere = (all: readonly Soon<T>[]): all is readonly T[] => !all.some((value) => value instanceof Promise);
  return isThere(values) ? values : Promise.all(values);
}
