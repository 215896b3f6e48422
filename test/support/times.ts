const isOften = process.env['CI'] !== undefined && process.env['FLEET_WORKERS'] === undefined;

/** How often something random or repeated is done: as often as is said where `CI` is set; otherwise, and in fleets with workers, a tenth of it. */
export const times = (full: number): number => (isOften ? full : Math.ceil(full / 10));
