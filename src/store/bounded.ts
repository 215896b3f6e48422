import { LRUCache } from 'lru-cache';

/** A map that stays within its bounds by letting go of what was used least recently. No ttl and no fetch. */
export type BoundedMap<K extends {}, V extends {}> = Pick<
  LRUCache<K, V>,
  'get' | 'peek' | 'has' | 'set' | 'delete' | 'size' | 'calculatedSize' | 'keys'
>;

interface Bounds<K, V> {
  /** Entries. */
  readonly max?: number;
  /** In what `sizeOf` measures. */
  readonly maxSize?: number;
  readonly sizeOf?: (value: V, key: K) => number;
  /** Told of what was evicted or deleted, not of what was replaced. */
  readonly onGone?: (value: V, key: K) => void;
}

export function boundedMap<K extends {}, V extends {}>(bounds: Bounds<K, V>): BoundedMap<K, V> {
  const { max = 0, maxSize = 0, sizeOf, onGone } = bounds;
  return new LRUCache<K, V>({
    max,
    maxSize,
    ...(sizeOf && { sizeCalculation: sizeOf }),
    ...(onGone && {
      dispose: (value, key, reason) => {
        if (reason !== 'set') onGone(value, key);
      },
    }),
  });
}
