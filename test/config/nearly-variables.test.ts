import { expect, it } from 'vitest';
import { NODE_VARIABLES as VARIABLES } from '../../src/entry/node/variables.ts';
import { nearlyVariables } from '../../src/entry/node/variables.ts';

const meant = (variable: string) => nearlyVariables({ [variable]: 'x' })[0]?.did_you_mean;

it.each([
  ['RATE_LIMIT_PER_MIN', 'RATE_LIMIT_PER_MINUTE'],
  ['RATE_LIMIT', 'RATE_LIMIT_PER_MINUTE'],
  ['UPSTREAM_URL', 'UPSTREAM_BASE_URL'],
  ['TRUSTED_PROXY', 'TRUSTED_PROXIES'],
  ['SECRET', 'SECRETS'],
  ['SECRET_FILE', 'SECRETS_FILE'],
  ['STORE_URL_FILES', 'STORE_URL_FILE'],
  ['UPSTREAM_BASE_URL_FILE', 'UPSTREAM_BASE_URL'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['MAX_BODY', 'MAX_BODY_BYTES'],
  ['ALLOWED_ORIGIN', 'ALLOWED_ORIGINS'],
])('%s is nearly %s', (variable, ours) => expect(meant(variable)).toBe(ours));

it('our own variables are none of these, and neither are those that every shell has, nor OpenTelemetry’s', () => {
  const shell = 'PATH HOME USER LOGNAME SHELL LANG LC_ALL TERM PWD OLDPWD SHLVL HOSTNAME TZ EDITOR PAGER MAIL TMPDIR _';
  const tools =
    'NODE_ENV NODE_OPTIONS CI DEBUG NO_COLOR SSH_AUTH_SOCK XDG_RUNTIME_DIR KUBERNETES_SERVICE_PORT INIT_CWD';
  const traces =
    'OTEL_EXPORTER_OTLP_ENDPOINT OTEL_SERVICE_NAME OTEL_LOG_LEVEL OTEL_SDK_DISABLED OTEL_BSP_MAX_QUEUE_SIZE';
  const names = [VARIABLES, ...[shell, tools, traces].map((list) => list.split(' '))].flat();
  expect(nearlyVariables(Object.fromEntries(names.map((name) => [name, 'x'])))).toEqual([]);
});
