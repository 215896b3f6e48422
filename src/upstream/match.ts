import { ID_FORMS, type Method, type Operation } from './operation.ts';
import { allOperations } from './operations/index.ts';

/** One pattern per path template; the trailing slash may be left out. */
const templates = [...Map.groupBy(allOperations, ({ path }) => path).values()].map((rows) => ({
  pattern: patternOf(rows[0]),
  methods: new Map(rows.map((row): [Method, Operation] => [row.method, row])),
}));

function patternOf(row: Operation | undefined): RegExp {
  const path = row?.path.replace('{id}', `(${ID_FORMS[row.idForm ?? 'digits']})`).replace(/\/$/, '/?');
  return new RegExp(`^${path}$`);
}

/** The operations at an upstream path, by method, and its `<ID>`; undefined if the table has none there. */
export function matchPath(path: string) {
  for (const { pattern, methods } of templates) {
    const found = pattern.exec(path);
    if (found) return { methods, id: found[1] };
  }
  return undefined;
}
