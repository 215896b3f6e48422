import { defineConfig } from 'oxlint';

type Pattern = { message: string; allowTypeImports?: boolean } & ({ regex: string } | { group: string[] });

/**
 * The rooms of src/ and whom each may import. Imports go one way:
 * entry → app → routes → http → gateway → {cache, resilience} → upstream → store → core.
 * `types` are siblings whose types may be named, but whose code may not be called.
 */
const rooms: Record<string, { imports: string[]; types?: string[]; packages?: string[] }> = {
  core: { imports: [] },
  store: { imports: ['core'] },
  cache: { imports: ['store', 'core'], types: ['upstream'] },
  resilience: { imports: ['store', 'core'], types: ['upstream'], packages: ['zod/mini'] },
  upstream: { imports: ['store', 'core'], packages: ['zod/mini'] },
  gateway: {
    imports: ['cache', 'resilience', 'upstream', 'store', 'core'],
    types: ['config'],
    packages: ['zod/mini'],
  },
  http: {
    imports: ['cache', 'resilience', 'upstream', 'store', 'core'],
    types: ['gateway', 'config'],
    packages: ['hono'],
  },
  routes: {
    imports: ['http', 'gateway', 'cache', 'resilience', 'upstream', 'store', 'core'],
    types: ['config'],
    packages: ['hono', 'zod/mini'],
  },
  config: { imports: ['upstream', 'core'], packages: ['zod/mini'] },
  // Data only.
  'proxy-account': { imports: ['gateway', 'upstream'], packages: ['zod/mini'] },
  app: {
    imports: ['routes', 'http', 'gateway', 'cache', 'resilience', 'upstream', 'store', 'core'],
    types: ['config'],
    packages: ['hono'],
  },
  portico: {
    imports: ['app', 'config', 'upstream'],
    types: ['http', 'gateway'],
    packages: ['hono'],
  },
  index: { imports: ['portico', 'upstream', 'gateway', 'core'], types: ['http'] },
  entry: { imports: [], packages: [] },
};

/** Where a package lives, and what code elsewhere does instead. Entries may use all but those of the other runtime. */
const packages: Record<string, Pattern> = {
  hono: {
    regex: '^hono(/|$)',
    message:
      'hono lives in app, routes, http and the sandbox. Take plain values or a web Request here, and adapt in http/.',
  },
  'zod/mini': {
    regex: '^zod/',
    message:
      'zod/mini lives in upstream, resilience, config, gateway and routes. Parse there and take the parsed value here.',
  },
  zod: {
    regex: '^zod$',
    message: 'zod is 12 kB more for the worker than zod/mini. Use that one.',
  },
  'lru-cache': {
    regex: '^lru-cache$',
    message: 'lru-cache lives in src/store/bounded.ts only. Import it from there, or use the Store port.',
  },
  '@hono/zod-openapi': {
    regex: '^@hono/zod-openapi$',
    message: '@hono/zod-openapi lives in src/routes/openapi.ts. Schemas are zod/mini, with documented().',
  },
  '@modelcontextprotocol/server': {
    regex: '^@modelcontextprotocol/',
    message:
      '@modelcontextprotocol/server lives in src/routes/mcp-server.ts, which is loaded late and only where MCP is on.',
  },
  node: {
    regex: '^(node:|@opentelemetry/|(ioredis|undici|pino|prom-client|swagger-ui-dist|@hono/node-server)(/|$))',
    message:
      'Node and its drivers live under src/entry only. Declare a port in the room, and pass its Node adapter in.',
  },
  cloudflare: {
    regex: '^(cloudflare:|@cloudflare/)',
    message: 'Workers modules live in src/entry/worker only. Declare a port in the room, and pass its adapter in.',
  },
};

const outsideSrc = ['sandbox', 'test', 'bench', 'scripts'];
const depths = [1, 2, 3];
const files = new Set(['app', 'config', 'portico', 'index']);
const arrows = 'entry → app → routes → http → gateway → {cache, resilience} → upstream → store → core';

function restrict(patterns: Pattern[]): { 'no-restricted-imports': ['error', { patterns: Pattern[] }] } {
  return { 'no-restricted-imports': ['error', { patterns }] };
}

const target = (up: string, names: string[]): string =>
  `^${up.replaceAll('.', '\\.')}(${names.map((name) => (files.has(name) ? `${name}\\.ts$` : `${name}/`)).join('|')})`;

/** The restricted imports of a file `depth` folders below src/; exact in depth, so that routes/app.ts is not src/app.ts. */
function restrictedImports(room: string, depth: number, also: string[] = []) {
  const { imports, types = [], packages: allowed = [] } = rooms[room]!;
  const up = depth === 0 ? './' : '../'.repeat(depth);
  const reachable = new Set([room, ...imports, ...types]);
  const forbidden = Object.keys(rooms).filter((name) => !reachable.has(name));
  const patterns: Pattern[] = Object.entries(packages)
    .filter(([name]) => !allowed.includes(name) && !also.includes(name))
    .map(([, rule]) => rule);
  patterns.push({
    regex: target(depth === 0 ? '../' : `${up}../`, outsideSrc),
    message: 'src/ imports nothing from sandbox, test, bench or scripts. Move what is shared into a room of src/.',
  });
  patterns.push({
    regex: target(up, forbidden),
    message: `${room} may not import this room (${arrows}). Move the code down, or declare a port in ${room} and have the entry pass it in.`,
  });
  if (types.length > 0) {
    patterns.push({
      regex: target(up, types),
      allowTypeImports: true,
      message: `${room} may name types of ${types.join(', ')}, not run their code. Use import type, and take the value as an argument.`,
    });
  }
  return restrict(patterns);
}

const below = (room: string, depth: number): string => `src/${room}/${'*/'.repeat(depth - 1)}*.ts`;

const boundaries = Object.keys(rooms)
  .filter((room) => room !== 'entry')
  .flatMap((room) =>
    files.has(room)
      ? [{ files: [`src/${room}.ts`], rules: restrictedImports(room, 0) }]
      : depths.map((depth) => ({ files: [below(room, depth)], rules: restrictedImports(room, depth) })),
  );

const fromSandbox: Pattern = {
  regex: '/sandbox/src/',
  allowTypeImports: true,
  message: 'Only entry/node/sandbox.ts loads the sandbox, with import() and where no upstream is configured.',
};

/** For an entry, which may use all packages but these. */
const without = (...names: string[]) => restrict([fromSandbox, ...names.map((name) => packages[name]!)]);

/** The sandbox stands for the other side: the gateway's rows it may read, and no package that the gateway's rooms may not. */
const ofSandbox = (...names: string[]) =>
  restrict([
    ...names.map((name) => packages[name]!),
    {
      group: [
        '**/src/**',
        '!**/src/upstream/operation*.ts',
        '!**/src/proxy-account/**',
        '!**/src/portico.ts',
        '!**/src/upstream/{fields,issues,path}.ts',
        '!**/src/entry/worker/**',
      ],
      message: 'Of src/ the sandbox sees the operations, their schemas and the words of their errors, not the client.',
    },
  ]);

export default defineConfig({
  plugins: ['typescript', 'unicorn', 'oxc', 'import', 'promise'],
  categories: { correctness: 'error', suspicious: 'error' },
  options: { typeAware: true, reportUnusedDisableDirectives: 'error' },
  ignorePatterns: [
    'node_modules',
    'dist',
    'coverage',
    'worker-configuration.d.ts',
    'test/full/import/{apps,generated}', // compiled by its step, against what it prints
    'test/full/openapi-clients',
    'test/full/package/app', // compiled by its test, against the package
    'client/src/openapi.ts',
  ],
  rules: {
    eqeqeq: 'error',
    'no-console': 'error',
    'no-underscore-dangle': ['error', { allow: ['_zod', '_default'] }], // zod's names
    'no-var': 'error',
    'prefer-const': 'error',
    'max-lines': ['error', { max: 250, skipBlankLines: true, skipComments: true }],
    'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
    'max-params': ['error', { max: 4 }],
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    'typescript/ban-ts-comment': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/no-non-null-assertion': 'error',
    'typescript/no-unsafe-argument': 'error',
    'typescript/no-unsafe-assignment': 'error',
    'typescript/no-unsafe-call': 'error',
    'typescript/no-unsafe-member-access': 'error',
    'typescript/no-unsafe-return': 'error',
    'typescript/no-unsafe-type-assertion': 'off',
    'typescript/only-throw-error': 'error',
    'promise/always-return': 'off',
    'promise/no-callback-in-promise': 'off',
    'typescript/switch-exhaustiveness-check': 'error',
  },
  overrides: [
    ...boundaries,
    {
      files: ['src/**/*.ts'],
      rules: { 'import/no-cycle': ['error', { ignoreTypes: false }] },
    },
    {
      files: ['client/src/*.ts'],
      rules: restrict([
        { regex: String.raw`^(\.\.|[^.])`, message: 'The client is a package of its own, and depends on nothing.' },
      ]),
    },
    { files: ['src/store/bounded.ts'], rules: restrictedImports('store', 1, ['lru-cache']) },
    {
      files: ['src/routes/openapi.ts'],
      rules: restrictedImports('routes', 1, ['@hono/zod-openapi']),
    },
    {
      files: ['src/routes/mcp-server.ts'],
      rules: restrictedImports('routes', 1, ['@modelcontextprotocol/server']),
    },
    {
      files: ['sandbox/src/**/*.ts'],
      rules: ofSandbox('zod', 'lru-cache', '@hono/zod-openapi', 'node', 'cloudflare'),
    },
    {
      files: ['sandbox/src/{main,node}.ts'],
      rules: { ...ofSandbox('zod', 'lru-cache', '@hono/zod-openapi', 'cloudflare'), 'no-console': 'off' },
    },
    {
      files: ['src/entry/**/*.ts'],
      rules: { ...without('lru-cache', '@hono/zod-openapi', 'cloudflare'), 'no-console': 'off' },
    },
    {
      files: ['src/entry/worker.ts', 'src/entry/worker/*.ts'],
      rules: without('lru-cache', 'zod', '@hono/zod-openapi', 'node'),
    },
    {
      files: [
        'src/entry/worker.ts',
        'sandbox/src/worker.ts',
        'test/contract/11-library/worker.ts',
        'test/support/worker-{of-objects,with-time}.ts',
        'examples/extend.ts',
        '**/*.config.ts',
        'docs/.vitepress/config.ts',
      ],
      rules: { 'import/no-default-export': 'off' },
    },
    {
      // Types of what it has installed are there only once it is: its own build checks them.
      files: ['examples/**'],
      plugins: ['typescript', 'unicorn', 'oxc', 'import', 'promise', 'react', 'jsx-a11y'],
      rules: {
        'import/no-unassigned-import': ['error', { allow: ['**/*.css'] }],
        'react/react-in-jsx-scope': 'off', // the compiler brings it in
        'typescript/no-redundant-type-constituents': 'off', // types of packages are known once these are installed and built
        'typescript/no-unsafe-argument': 'off',
        'typescript/no-unsafe-assignment': 'off',
        'typescript/no-unsafe-call': 'off',
        'typescript/no-unsafe-member-access': 'off',
        'typescript/no-unsafe-return': 'off',
        'unicorn/require-post-message-target-origin': 'off', // of windows; the page has channels only
      },
    },
    {
      files: ['test/**/*.ts', 'bench/**/*.ts', 'scripts/**/*.ts', '*.config.ts'],
      rules: {
        'max-lines': ['error', { max: 500, skipBlankLines: true, skipComments: true }],
        'max-lines-per-function': 'off',
        'no-console': 'off',
        'typescript/no-non-null-assertion': 'off',
        'typescript/no-unsafe-assignment': 'off',
        'typescript/no-unsafe-member-access': 'off',
      },
    },
  ],
});
