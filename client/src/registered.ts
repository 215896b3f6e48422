/**
 * A gateway with rows or overviews of its own: what `npx portico client` prints declares its operations here, and they stand
 * in the place of those that this package knows.
 */
export interface Registered {}
