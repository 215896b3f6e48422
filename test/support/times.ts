/** How often something random or repeated is done: as often as is said where `CI` is set, a tenth of it otherwise. */
export const times = (full: number): number => (process.env['CI'] === undefined ? Math.ceil(full / 10) : full);
