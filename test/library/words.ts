import { openApiText } from '../../src/routes/document.ts';
import { accountTables, allOperations, allOverviews } from '../support/account-api.ts';
import { library } from './library.ts';

/** Words of the account API that anybody uses, and what for. */
const COMMON: Readonly<Record<string, string>> = {
  'what calls do': 'get create list delete update start refresh',
  'what calls have': 'api id key keys token method page error body answer v1',
  'what a gateway has': 'account config overview section meta line bff plan',
  'words of HTTP': 'authorization ip proxy',
  'English words': 'not allowed needed out pending',
  'channels of Redis, transactions of SQLite, registries of metrics, user names in addresses':
    'channel transaction register login',
  'a write that must not happen twice, in contract.md section 7': 'purchase',
  'the context that OpenTelemetry is in': 'active',
  'how metrics of several processes become one': 'aggregate',
};

const common = new Set(Object.values(COMMON).flatMap((words) => words.split(' ')));

/** In lower case, without the `s` of a plural. Names in camel case, or with `_`, `-` or `/`, are several. */
const wordsIn = (text: string): ReadonlySet<string> =>
  new Set(
    text
      .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .map((word) => word.replace(/ies$/, 'y').replace(/(?<=[a-z]{3}[^s])s$/, '')),
  );

const componentsOf = async (tables: Parameters<typeof openApiText>[0]): Promise<readonly string[]> => {
  const { components } = JSON.parse(await openApiText(tables)) as { components: { schemas: object } };
  return Object.keys(components.schemas);
};

/** What every gateway's document has. */
const ours = new Set(await componentsOf(library));

const names = [
  ...allOperations.flatMap(({ id, path, group = '', tag, refusals = {} }) => [
    id,
    group,
    tag.name,
    ...path.split('/').filter((part) => part !== '{id}'),
    ...Object.keys(refusals),
  ]),
  ...allOverviews.flatMap(({ id, path, sections }) => [id, path, ...Object.keys(sections)]),
  ...(await componentsOf(accountTables)).filter((name) => !ours.has(name)),
];

/** Of several words: also where each of those is common. */
const compounds = [...new Set(names.filter((name) => wordsIn(name).size > 1))];
const words = [...wordsIn(names.join(' '))].filter((word) => !common.has(word));

/** What HTTP has a status for (402), and what we say of it. */
const OF_HTTP = /payment_required|payment required|asks for a payment/gi;

/** What of the account API is named in a text: its operations, paths, groups, overviews, sections, components and codes. */
export function accountWordsIn(text: string): readonly string[] {
  const checked = text.replaceAll(OF_HTTP, '');
  const there = wordsIn(checked);
  const wholes = compounds.filter((name) => new RegExp(String.raw`(?<![\w-])${name}(?![\w-])`).test(checked));
  return [...words.filter((word) => there.has(word)), ...wholes];
}
