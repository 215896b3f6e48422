import { each, integers, type Rows } from '../rows.ts';

const ANY =
  'entry 1 to be scheme://host[:port] of a page, as browsers send it, in lower case, such as https://app.example (no wildcards; or * alone)';
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];
const SHARE = 'all, errors, failures, or a share from 0 to 1 such as 0.01';

const alone = (...origins: string[]) => origins.map((origin) => [origin, [origin]] as const);

export const rows: readonly Rows[] = [
  {
    variable: 'PUBLIC_URL',
    good: [
      ['https://gateway.example', 'https://gateway.example'],
      ['https://gateway.example/', 'https://gateway.example'],
      ['https://gateway.example:8443/api//', 'https://gateway.example:8443/api'],
    ],
    bad: [
      ...each(['gateway.example', 'ws://gateway.example'], 'a URL whose scheme is http or https'),
      ...each(['https://', 'https://a_b c'], 'a URL whose host is a name or an IP address'),
      ['https://gateway.example:99999/api', 'a URL whose port is an integer from 1 to 65535'],
      ['https://user@gateway.example', 'a URL without a user name and password'],
      ['https://gateway.example?x', 'a URL without a query'],
      ['https://gateway.example/#x', 'a URL without a fragment'],
    ],
  },
  {
    variable: 'ALLOWED_ORIGINS',
    good: [
      ...alone('https://app.example', 'https://app.example:8443', 'http://[::1]:3000', 'http://127.0.0.1:3000'),
      ...alone('capacitor://localhost', 'chrome-extension://abcdefghijklmnop', 'https://xn--bcher-kva.example'),
      [' * ', ['*']],
      ['https://a.example ,ionic://localhost', ['https://a.example', 'ionic://localhost']],
    ],
    bad: [
      ...each(
        ['https://app.example/', 'https://App.example', 'https://app.example:0443', 'https://u@app.example/x?y#z'],
        'entry 1 to be https://app.example',
      ),
      ['http://1', 'entry 1 to be http://0.0.0.1'],
      ['https://bücher.example', 'entry 1 to be https://xn--bcher-kva.example'],
      ...each(['app.example', 'https://', 'https://app.example:99999', 'https://*.app.example', 'null'], ANY),
      ...each(['ftp://app.example', 'wss://app.example', 'file://app.example'], ANY),
      ...each(['https://app.example *', 'capacitor://LOCALHOST', 'capacitor://localhost/', '*,*'], ANY),
      ['https://a.example,*', ANY.replace('1', '2')],
      ['https://a.example,https://b.example/', 'entry 2 to be https://b.example'],
      ['https://a.example,,https://b.example', 'entry 2 not to be empty; is there a comma too many?'],
    ],
  },
  {
    variable: 'SESSIONS',
    beside: { SECRETS: 'a secret for these rows and no other' },
    good: [['true', true]],
    bad: each(['yes', 'on', '1', '0', 'TRUE', 'true ', 'x'], 'true or false'),
  },
  {
    variable: 'MCP',
    good: [['true', true]],
    bad: each(['yes', 'on', '1', 'TRUE'], 'true or false'),
  },
  {
    variable: 'LOG_LEVEL',
    good: LEVELS.map((level) => [level, level]),
    bad: each(['x', 'INFO', 'verbose', 'warning', 'info '], 'trace, debug, info, warn, error, fatal or silent'),
  },
  {
    variable: 'LOG_REQUESTS',
    good: [
      ['all', { from: 0, share: 0 }],
      ['errors', { from: 400, share: 0 }],
      ['failures', { from: 500, share: 0 }],
      ['0', { from: 500, share: 0 }],
      ['0.01', { from: 500, share: 0.01 }],
      ['1.0', { from: 500, share: 1 }],
    ],
    bad: each(['none', 'ALL', '-0.1', '1.01', '.5', '1%', '1e-2', '0.', '2', 'all,errors'], SHARE),
  },
  integers('SLOW_MS', 0, 600_000),
];
