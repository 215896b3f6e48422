import type { DocsAssets, OpenApiText } from '../../routes/docs.ts';

/** The static assets that the build has made. */
export interface AssetsBinding {
  fetch(request: Request): Promise<Response>;
}

export function docsAssets(assets: AssetsBinding | undefined): DocsAssets {
  return {
    async read(name) {
      const response = await assets?.fetch(assetRequest(`/docs/${name}`));
      return response?.ok ? new Uint8Array(await response.arrayBuffer()) : null;
    },
  };
}

export function openApiAsset(assets: AssetsBinding | undefined): OpenApiText {
  return async () => {
    const response = await assets?.fetch(assetRequest('/openapi.json'));
    return response?.ok ? response.text() : null;
  };
}

const assetRequest = (path: string) => new Request(`https://assets.invalid${path}`);
