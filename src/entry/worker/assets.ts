import type { Deps } from '../../app.ts';

/** The static assets that the build has made. */
export interface AssetsBinding {
  fetch(request: Request): Promise<Response>;
}

export function assetsOf(binding: AssetsBinding | undefined): Pick<Deps, 'docsAssets'> {
  return {
    docsAssets: {
      async read(name) {
        const found = await binding?.fetch(new Request(`https://assets.invalid/docs/${name}`));
        return found?.ok ? new Uint8Array(await found.arrayBuffer()) : null;
      },
    },
  };
}
