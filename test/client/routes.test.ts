import { expect, test } from 'vitest';
import { routes } from '../../client/src/routes.ts';
import { documented } from '../routes/openapi-document.ts';

const calls = documented.filter(({ item }) => !item.tags.includes('About'));

/** Of those that could have a body, those that take none are marked. */
const markOf = (method: string, hasBody: boolean) => (/^(post|patch|put)$/.test(method) && !hasBody ? '?' : '');

test('the routes are those of the OpenAPI document, but for calls about the gateway itself', () => {
  const wanted = calls.map(({ item, method, name }) => [
    item.operationId,
    name + markOf(method, item.requestBody !== undefined),
  ]);
  expect(routes).toEqual(Object.fromEntries(wanted));
});

test('every method of the document is one that the client puts input into', () => {
  expect(new Set(calls.map(({ method }) => method))).toEqual(new Set(['get', 'post', 'patch', 'delete']));
});

test('every parameter of a path is one that the client puts in, and no other name is that of a member of the body', () => {
  for (const { path, item } of calls) {
    const inPath = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name);
    const named = (item.parameters ?? []).filter((one) => one.in === 'path').map(({ name }) => name);
    expect(named, path).toEqual(inPath);
    const query = (item.parameters ?? []).filter((one) => one.in === 'query');
    if (item.requestBody) expect(query, `${path} would need input in two places`).toEqual([]);
  }
});
