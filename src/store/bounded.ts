import { LRUCache } from 'lru-cache';

/** A map that stays within its bounds by letting go of what was used least recently. No ttl and no fetch. */
export type BoundedMap<K extends {}, V extends {}> = Pick<
  LRUCache<K, V>,
  'get' | 'peek' | 'has' | 'set' | 'delete' | 'size' | 'calculatedSize' | 'keys'
>;

interface Bounds<K, V> {
  /** Entries, or the sum of what `sizeOf` measures. */
  readonly max: number;
  readonly sizeOf?: (value: V, key: K) => number;
  /** Told of what was evicted or deleted, not of what was replaced. */
  readonly onGone?: (value: V, key: K) => void;
}

/** By size and not by `max`, for which lru-cache takes the memory of a full map at once. */
export function boundedMap<K extends {}, V extends {}>({
  max,
  sizeOf = () => 1,
  onGone,
}: Bounds<K, V>): BoundedMap<K, V> {
  return new LRUCache<K, V>({
    maxSize: max,
    sizeCalculation: sizeOf,
    ...(onGone && {
      dispose: (value, key, reason) => {
        if (reason !== 'set') onGone(value, key);
      },
    }),
  });
}
