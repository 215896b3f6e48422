/** How often something random is tried: more often in `npm run test:full`. */
export const times = (count: number): number => count * Number(process.env['TIMES'] ?? 1);

/** Where random numbers begin: always in the same place but in `npm run test:full`. */
export const seed = (): number => Number(process.env['SEED'] ?? 1);
