import { defineRows, type Gateway, overview } from 'portico';
import { Hono } from 'hono';
import { rows } from './app.ts';

declare const gateway: Gateway;

export const noSuchRow = rows.listBadge;

export const noSuchGroup = defineRows({
  ...rows,
  deleteBadge: { at: 'DELETE /api/v2/badge/{id}/', answer: null, invalidates: ['badgers'] },
});

export const wrongField = new Hono().get('/', gateway.request, async (c) => {
  const badges = await c.var.portico.read(rows.listBadges);
  const title: number | undefined = badges.json().results[0]?.title;
  return c.json({ title });
});

export const noSuchSection = overview('/bff/v1/wrong', { badges: { read: rows.listBadges } }, ({ badgers }) => badgers);
