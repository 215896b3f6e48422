import type { Portico } from './client.ts';
import { PorticoProblem } from './problem.ts';
import { wireOf } from './request.ts';
import type { OperationId } from './routes.ts';
import type { Answer, CallOptions, Input } from './types.ts';

/** Reads that may be in a batch: those of the upstream's paths. */
type ReadId = Exclude<Extract<OperationId, `get${string}` | `list${string}`>, `get${string}Overview` | 'getSession'>;
type Reads = Readonly<Record<string, { [Id in ReadId]: readonly [id: Id, input?: Input<Id>] }[ReadId]>>;
type Read<Given> = Given extends readonly [infer Id extends OperationId, ...unknown[]]
  ? Answer<Id> | PorticoProblem
  : never;

/** Up to 20 reads in one call, by names of yours. One that failed is its problem; it is returned, not thrown. */
export async function readBatch<const Given extends Reads>(
  portico: Portico,
  reads: Given,
  options?: CallOptions,
): Promise<{ -readonly [Name in keyof Given]: Read<Given[Name]> }> {
  const requests = Object.entries(reads).map(([id, [read, input]]) => ({
    id,
    path: wireOf(portico.routes[read], input).path,
  }));
  const { responses } = await portico.batch({ requests }, options);
  const answers = responses.map(({ id, status, body }) => {
    // The upstream may answer with 204 too, which the document does not know.
    const isGood = status === 200 || status < 300;
    return [id, isGood ? body : new PorticoProblem(body)];
  });
  return Object.fromEntries(answers) as { -readonly [Name in keyof Given]: Read<Given[Name]> };
}
