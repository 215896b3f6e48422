import { GatewayError } from '../core/errors.ts';
import { about, pageAt, type Route } from './route.ts';

type DocsAsset = 'swagger-ui-bundle.js' | 'swagger-ui.css';

/** The two files of Swagger UI, from where the runtime keeps them. */
export interface DocsAssets {
  read(name: DocsAsset): Promise<Uint8Array<ArrayBuffer> | null>;
}

/** An account that anybody may use, and its key. */
export interface TrialAccount {
  readonly key: string;
  readonly description: string;
}

const PAGE = {
  'Cache-Control': 'no-cache',
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; img-src data:; base-uri 'none'; frame-ancestors 'none'; script-src 'self'; style-src 'self'; " +
    "connect-src 'self'; form-action 'none'",
} as const;

/** `mount`: the path that the app is mounted under. Swagger UI's icons are in its style sheet and its script. */
const pageOf = (accounts: readonly TrialAccount[], mount: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Portico API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${mount}/docs/swagger-ui.css">
<script src="${mount}/docs/swagger-ui-bundle.js" defer></script>
<script src="${mount}/docs/start.js" defer></script>
</head>
<body>
<noscript>
<h1>Portico API</h1>
<p>This page needs JavaScript. The same is in <a href="${mount}/openapi.json">${mount}/openapi.json</a>.</p>
</noscript>
${accounts.length > 0 ? listOf(accounts) : ''}<main id="docs"></main>
</body>
</html>
`;

function listOf(accounts: readonly TrialAccount[]): string {
  const items = accounts.map(({ key, description }) => `<li><code>${key}</code>: ${description}</li>`);
  return `<details class="swagger-ui" open>
<summary>Accounts of the sandbox. The first one’s key is entered already: open a call and press Execute.</summary>
<ul>
${items.join('\n')}
</ul>
</details>
`;
}

/** Without the badge of a remote validator, and without storing credentials beyond the page. */
const startOf = ([first]: readonly TrialAccount[], mount: string) => `const page = SwaggerUIBundle({
  url: '${mount}/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  validatorUrl: null,
  tryItOutEnabled: ${first !== undefined},${first ? `\n  onComplete: () => page.preauthorizeApiKey('Token', 'Token ${first.key}'),` : ''}
});
`;

const SCRIPT = 'text/javascript; charset=utf-8';

export const docsDescription = about('/docs', 'getDocsPage', 'This document as a page', (doc) =>
  doc.good('A page that needs nothing from any other host.', { 'text/html': {} }),
);

/** A page that shows the OpenAPI document without any other host (`contract.md` section 10). */
export const docsRoutes = (assets: DocsAssets, accounts: readonly TrialAccount[] = []): Route[] => [
  pageAt('/docs', async ({ mount }) => ({ status: 200, headers: PAGE, body: pageOf(accounts, mount) })),
  pageAt('/docs/start.js', async ({ mount }) => {
    const headers = { 'Cache-Control': 'no-cache', 'Content-Type': SCRIPT };
    return { status: 200, headers, body: startOf(accounts, mount) };
  }),
  assetAt('swagger-ui-bundle.js', SCRIPT, assets),
  assetAt('swagger-ui.css', 'text/css; charset=utf-8', assets),
];

const assetAt = (name: DocsAsset, type: string, assets: DocsAssets) =>
  pageAt(`/docs/${name}`, async () => {
    const body = await assets.read(name);
    if (!body) throw GatewayError.of('not_found', { detail: 'This server has no documentation page.' });
    return { status: 200, headers: { 'Cache-Control': 'public, max-age=3600', 'Content-Type': type }, body };
  });
