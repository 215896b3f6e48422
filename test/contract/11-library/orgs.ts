import * as z from 'zod/mini';
import {
  anyText,
  defineRows,
  documented,
  from,
  fromPath,
  identifier,
  integerText,
  model,
  overview,
  pageOf,
  resource,
  text,
} from '../../../src/index.ts';
import { tableOf } from '../../../src/upstream/table.ts';

/** An upstream of another shape: several parameters in a path, PUT, and pages of every kind. */

const name = text('what it is called', 'core');
const org = resource('Org', { name });
const member = resource('Member', {
  id: identifier('its number', 7),
  name,
  manager: z.nullable(identifier('whose', 8)),
});
const host = resource('Host', { name });
const members = pageOf(member, 'data');
const cache = { fresh: 30, stale: 60, onError: 600 } as const;

export const rows = defineRows({
  getOrg: { at: 'GET /v1/orgs/{org}', params: { org: 'slug' }, answer: org, group: 'orgs', cache },
  listMembers: {
    at: 'GET /v1/orgs/{org}/members',
    params: { org: 'slug' },
    query: {
      limit: integerText('how many', 1),
      since: integerText('from where'),
      active: z.enum(['true', 'false']),
      roles: z.array(z.enum(['owner', 'guest'])),
      tag: documented(z.array(z.string().check(z.maxLength(5))), { explode: true }),
    },
    answer: members.answer,
    page: { ...members.page, size: 'limit' },
    group: 'members',
    cache,
  },
  getMember: {
    at: 'GET /v1/orgs/{org}/members/{id}',
    params: { org: 'slug' },
    answer: member,
    group: 'members',
    cache,
  },
  putMember: {
    at: 'PUT /v1/orgs/{org}/members/{id}',
    params: { org: 'slug' },
    body: { schema: model('NewMember', { name }) },
    answer: member,
    invalidates: [{ item: 'members' }],
    exclusive: true,
  },
  deleteOrg: { at: 'DELETE /v1/orgs/{org}', params: { org: 'slug' }, answer: null, invalidates: ['orgs', 'members'] },
  listHosts: { at: 'GET /v1/hosts', ...pageOf(host, 'list'), group: 'hosts', cache },
  listKept: { at: 'GET /v1/hosts/kept', query: { owner: anyText() }, ...pageOf(host, 'items'), group: 'hosts', cache },
  getBox: { at: 'GET /v1/boxes/{box}', params: { box: 'name' }, answer: host },
  getKeptBox: { at: 'GET /v1/boxes/kept', answer: host, secrets: ['name'] },
  makeBox: { at: 'POST /v1/boxes/new', answer: host },
  getKey: { at: 'GET /v1/keys/{key}', params: { key: 'uuid' }, answer: host, group: 'keys', cache },
  deleteKey: { at: 'DELETE /v1/keys/{key}', params: { key: 'uuid' }, answer: null, invalidates: [{ item: 'keys' }] },
  getFile: { at: 'GET /v1/files/{file}', params: { file: 'name' }, answer: host },
  getIndex: { at: 'GET /v1/index.json', answer: host },
  getHost: {
    at: 'GET /v1/hosts/{region}/{host}',
    params: { region: 'name', host: 'uuid' },
    answer: host,
  },
});

const ofPath = { org: fromPath('org') };

export const orgs = {
  table: tableOf(rows),
  overviews: [
    overview('/bff/v1/box-overview/:box', {
      box: { read: rows.getBox, params: { box: fromPath('box') }, required: true },
    }),
    overview('/bff/v1/orgs/:org/member-overview/:id', {
      member: { read: rows.getMember, params: { ...ofPath, id: fromPath('id') }, required: true },
      manager: { read: rows.getMember, params: { ...ofPath, id: from('member', 'manager', rows.listMembers) } },
      others: { read: rows.listMembers, params: ofPath, query: { limit: 2, since: fromPath('id') } },
      kept: { read: rows.listKept, query: { owner: from('member', 'name'), kind: 'all' } },
    }),
  ],
};
