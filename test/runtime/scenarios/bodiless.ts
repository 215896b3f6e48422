import { expect } from 'vitest';
import { allOperations } from '../../support/account-api.ts';
import { exampleInput } from '../../support/examples.ts';
import { rawRequest } from '../../support/raw-client.ts';
import { fail, type Scenario, visit } from '../stage.ts';

/** Operations whose good answer is 204, byte by byte: what frames a body is not there either. */
export const bodilessScenarios: readonly Scenario[] = allOperations
  .filter(({ answer }) => answer === null)
  .map(({ id, method }) => ({
    name: `204 of ${id} has no body, no type and no length`,
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      await fail(stage, { operation: id, status: 204 });
      const { host, port } = new URL(stage.gateway);
      const fields = [`Host: ${host}`, `Authorization: Token ${visitor.token}`, 'Content-Length: 0'];
      const head = [`${method} ${exampleInput(id).path} HTTP/1.1`, ...fields].join('\r\n');
      const { status, headers, body } = await rawRequest(Number(port), `${head}\r\n\r\n`);
      expect([status, body]).toEqual([204, '']);
      for (const name of ['content-type', 'content-length', 'transfer-encoding', 'etag'])
        expect(headers).not.toHaveProperty(name);
      expect(headers['cache-control']).toBe('no-store');
    },
  }));
