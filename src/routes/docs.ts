import { GatewayError } from '../core/errors.ts';
import type { Answer } from '../http/reply.ts';
import { about, htmlAnswer, pageAt, type Route } from './route.ts';

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

const POLICY = "; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'";

/** `mount`: the path that the app is mounted under. Swagger UI's icons are in its style sheet and its script. */
const pageOf = (accounts: readonly TrialAccount[], mount: string) =>
  htmlAnswer(
    'Portico API',
    POLICY,
    `<link rel="stylesheet" href="${mount}/docs/swagger-ui.css">
<script src="${mount}/docs/swagger-ui-bundle.js" defer></script>
<script src="${mount}/docs/start.js" defer></script>
`,
    `<noscript>
<h1>Portico API</h1>
<p>This page needs JavaScript. The same is in <a href="${mount}/openapi.json">${mount}/openapi.json</a>.</p>
</noscript>
${accounts.length > 0 ? tableOf(accounts) : ''}<main id="docs"></main>`,
  );

function tableOf(accounts: readonly TrialAccount[]): string {
  const rows = accounts.map(({ key, description }) => `<tr><td><code>${key}</code></td><td>${description}</td></tr>`);
  return `<details class="swagger-ui" open>
<summary>Accounts of the sandbox. The first one’s key is entered already: open a call and press Execute.</summary>
<table><tbody>
${rows.join('\n')}
</tbody></table>
</details>
`;
}

const keyEntered = ({ key }: TrialAccount) => `\n  onComplete: () => page.preauthorizeApiKey('Token', 'Token ${key}'),`;

/** Without the badge of a remote validator, and without storing credentials beyond the page. */
const startOf = ([first]: readonly TrialAccount[], mount: string) => `const page = SwaggerUIBundle({
  url: '${mount}/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  validatorUrl: null,
  tryItOutEnabled: ${first !== undefined},${first ? keyEntered(first) : ''}
});
`;

const KEPT = { 'Cache-Control': 'public, max-age=3600' } as const;
const SCRIPT = { 'Content-Type': 'text/javascript; charset=utf-8' } as const;
const STYLE = { 'Content-Type': 'text/css; charset=utf-8' } as const;

export const docsDescription = about('/docs', 'getDocsPage', 'This document as a page', (doc) =>
  doc.good('A page that needs nothing from any other host.', { 'text/html': {} }),
);

/** A page that shows the OpenAPI document without any other host (`contract.md` section 10). */
export function docsRoutes(assets: DocsAssets, accounts: readonly TrialAccount[] = []): Route[] {
  return [
    pageAt(docsDescription.path, async ({ mount }) => pageOf(accounts, mount)),
    pageAt('/docs/start.js', async ({ mount }) => {
      return { status: 200, headers: { 'Cache-Control': 'no-cache', ...SCRIPT }, body: startOf(accounts, mount) };
    }),
    pageAt('/docs/swagger-ui-bundle.js', () => assetAnswer(assets, 'swagger-ui-bundle.js', SCRIPT)),
    pageAt('/docs/swagger-ui.css', () => assetAnswer(assets, 'swagger-ui.css', STYLE)),
  ];
}

async function assetAnswer(assets: DocsAssets, name: DocsAsset, type: Record<string, string>): Promise<Answer> {
  const body = await assets.read(name);
  if (!body) throw GatewayError.of('not_found', { detail: 'This server has no documentation page.' });
  return { status: 200, headers: { ...KEPT, ...type }, body };
}
