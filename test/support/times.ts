const isOften = process.env['CI'] !== undefined;

/** How often something random or repeated is done: as often as is said where `CI` is set; otherwise a tenth of it. */
export const times = (full: number): number => (isOften ? full : Math.ceil(full / 10));
