import { ID_FORMS, type Method, type Operation } from '../operation.ts';
import { account, notification, social, verification } from './account.ts';
import { billing } from './billing.ts';
import { proxy } from './proxy.ts';
import { referral } from './referral.ts';

/** The upstream's 29 endpoints, by operation id. Everything else reads this table. */
export const operations = {
  ...account,
  ...billing,
  ...referral,
  ...proxy,
  ...notification,
  ...verification,
  ...social,
};

export type OperationId = keyof typeof operations;

export const allOperations: readonly (Operation & { id: OperationId })[] = Object.values(operations);

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
    const match = pattern.exec(path);
    if (match) return { methods, id: match[1] };
  }
  return undefined;
}
