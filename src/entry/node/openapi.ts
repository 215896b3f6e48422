import { readFile } from 'node:fs/promises';
import type { OpenApiText } from '../../routes/docs.ts';

/** Read beside the bundle, where the build writes it; when run from source, made by code that is loaded only then. */
export function openApiDocument(): OpenApiText {
  let text: string | undefined;
  return async () => (text ??= await written().catch(made));
}

const written = () => readFile(new URL('./openapi.json', import.meta.url), 'utf8');

async function made(): Promise<string> {
  const { openApiText } = await import('../../routes/openapi/document.ts');
  return openApiText();
}
