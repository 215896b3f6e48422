import { type BadLeg, isGood, type Leg } from '../../gateway/overview.ts';
import { project } from '../../gateway/project.ts';
import type { CompositionRequest } from './composition.ts';

/** The JSON of a section: the upstream's, trimmed if the client asked for some fields only. */
export function sectionText({ overview, fields }: CompositionRequest, name: string, leg: Leg): string {
  if (!isGood(leg)) return 'null';
  const wanted = fields.get(name);
  const section = overview.sections[name];
  return wanted && section ? project(section.operation, leg.text, wanted) : leg.text;
}

/** The error of a section that failed, in the terms of a problem. */
export function errorOf({ error }: BadLeg) {
  const { code, status, kind, detail, retryAfter } = error;
  return {
    code,
    status,
    detail,
    retryable: kind.retryable,
    ...(retryAfter !== undefined && { retry_after: retryAfter }),
  };
}
