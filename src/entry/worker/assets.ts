import type { Deps } from '../../app.ts';

/** The static assets that the build has made. */
export interface AssetsBinding {
  fetch(request: Request): Promise<Response>;
}

export function assetsOf(binding: AssetsBinding | undefined): Pick<Deps, 'docsAssets' | 'openApiText'> {
  const find = async (path: string) => {
    const response = await binding?.fetch(new Request(`https://assets.invalid${path}`));
    return response?.ok ? response : undefined;
  };
  return {
    docsAssets: {
      async read(name) {
        const found = await find(`/docs/${name}`);
        return found ? new Uint8Array(await found.arrayBuffer()) : null;
      },
    },
    openApiText: async () => (await find('/openapi.json'))?.text() ?? null,
  };
}
