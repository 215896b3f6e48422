import { describe, expect, test } from 'vitest';
import { START_MS } from '../../support/clock.ts';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { expectProblem, type Problem } from '../../support/problem.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';

/** Status, code of the problem, type if not JSON | what comes | each of `errors` as code, field or `-`, and message. */
const SHAPES = `
400 paid_plan_active | [{"message":"Cancel.","code":"paid_plan_active"}] | paid_plan_active - Cancel.
400 one | [{"message":"First.","code":"one"},{"message":"Second.","code":"two"}] | one - First. ; two - Second.
403 2fa_needed | {"detail":"Enter the code.","code":"2fa_needed"} | 2fa_needed - Enter the code.
403 suspended | {"detail":"Suspended.","code":"suspended","status_code":403,"extra":{"a":["b"]}} | suspended - Suspended. ; invalid extra.a b
400 invalid | {"code":"invalid","label":["Required."]} | invalid - invalid ; invalid label Required.
403 2fa_needed | {"detail":"","code":"2fa_needed"} | 2fa_needed - 2fa_needed
402 card_declined | {"error":{"code":"card_declined","message":"No."}} | card_declined - No.
404 not_found | {"detail":"Not found."} | invalid - Not found.
403 api_key_not_allowed | {"code":"api_key_not_allowed"} | api_key_not_allowed - api_key_not_allowed
400 validation_failed | {"mode":["Wrong.","Very."],"label":["Missing."]} | invalid mode Wrong. ; invalid mode Very. ; invalid label Missing.
400 validation_failed | {"mode":"Wrong."} | invalid mode Wrong.
400 validation_failed | {"code":[{"message":"Used up.","code":"used"}],"detail":["Missing."],"message":["Too long."]} | used code Used up. ; invalid detail Missing. ; invalid message Too long.
400 bad_request | {"non_field_errors":["Not now."]} | invalid - Not now.
400 too_early | {"non_field_errors":[{"message":"Not now.","code":"too_early"}],"mode":["Wrong."]} | too_early - Not now. ; invalid mode Wrong.
400 validation_failed | {"plan":{"proxy_countries":{"US":["Too many."]},"non_field_errors":["No."]},"a":{"b":{"message":"c","code":"d"}}} | invalid plan.proxy_countries.US Too many. ; invalid plan No. ; d a.b c
409 conflict | "Already done." | invalid - Already done.
400 bad_request | ["One.","Two."] | invalid - One. ; invalid - Two.
400 validation_failed | {"detail":"Look again.","mode":["Wrong."]} | invalid - Look again. ; invalid mode Wrong.
400 validation_failed | {"code":"No such code."} | invalid code No such code.
400 bad_request | [{"message":"No.","code":17}] | invalid - No.
422 unprocessable_content | {"detail":"No.","code":"what is <this>?"} | invalid - No.
404 not_found | [] |
405 method_not_allowed | {} |
406 not_acceptable | <h1>No</h1> |
402 payment_required | {"detail":"  "} |
419 status_419 | {"detail":"Short."} | invalid - Short.
400 x | [{"message":"<b onclick=a()>Hi</b>","code":"x"},{"message":"Plain.","code":"x"}] | x - x ; x - Plain.
400 bad_request | {"message":" ","detail":"No."} | invalid - No.
403 forbidden | {"detail":"No.","field":"a"} | invalid - No.
400 card_declined | {"message":"Not paid.","error":{"code":"card_declined","message":"Declined.","stack":"at a.js:1"}} | invalid - Not paid. ; card_declined - Declined.
404 not_found | {"status":404,"error":"Not Found","traces":{"Application":[{"id":0,"trace":"a.rb:1"}]}} | invalid - Not Found
400 validation_failed | {"title":["Too long."],"type":"Unknown.","status":["Wrong."]} | invalid title Too long. ; invalid type Unknown. ; invalid status Wrong.
400 validation_failed | {"title":"Too long.","name":"Odd."} | invalid title Too long. ; invalid name Odd.
403 forbidden | {"type":"https://a.example/credit","title":"No credit.","detail":"Your balance is 30.","instance":"/a/1","balance":30} | invalid - Your balance is 30.
400 bad_request | {"title":"No.","detail":" ","status":400,"trace_id":"a1","timestamp":"2026-06-09T11:50:08Z","extra":{"a":"b","c":{"title":"Pro","type":"x"}}} | invalid - No.
402 card_declined | {"title":"Not paid.","type":"about:blank","code":"card_declined","card":["Expired."]} | card_declined - Not paid. ; invalid card Expired.
400 bad_request application/problem+json | {"title":"No.","documentation_url":"https://a.example"} | invalid - No.
403 forbidden Application/Problem+JSON;charset=utf-8 | {"type":"urn:no"} |
422 unprocessable_content | {"title":"Not valid.","status":422,"errors":[{"detail":"Low.","pointer":"#/age"},{"detail":"Odd.","pointer":"/a/0/b~1c"},{"detail":"No.","pointer":"#"}]} | invalid - Not valid. ; invalid age Low. ; invalid a.0.b/c Odd. ; invalid - No.
400 validation_failed | {"type":"/problems/validation_failed","title":"Validation failed","status":400,"code":"validation_failed","detail":"Look.","instance":"/a","request_id":"r","retryable":false,"errors":[{"code":"validation_failed","message":"Look.","field":null},{"code":"too_small","message":"Low.","field":"a.b"}]} | validation_failed - Look. ; too_small a.b Low.
400 validation_failed | {"type":"https://a.example/1","title":"Not valid.","status":400,"errors":{"Name":["Missing.","Odd."],"Age":"Low.","":["No."]},"traceId":"00-1"} | invalid - Not valid. ; invalid Name Missing. ; invalid Name Odd. ; invalid Age Low. ; invalid - No.
400 validation_failed | {"type":"https://a.example/1","title":"Not valid.","invalid-params":[{"name":"age","reason":"Low."}]} | invalid - Not valid. ; invalid age Low.
400 validation_failed | {"type":"validation_error","errors":[{"code":"required","detail":"Missing.","attr":"a.name"},{"code":"odd","detail":"Odd.","attr":"size"}]} | required a.name Missing. ; odd size Odd.
404 not_found | {"type":"client_error","errors":[{"code":"not_found","detail":"No.","attr":null}]} | not_found - No.
`
  .trim()
  .split('\n')
  .flatMap((line) => {
    const [head = '', body = '', errors = ''] = line.split(/ \| ?/);
    const [status = '', code = '', type = 'application/json'] = head.split(' ');
    const shape = { status: Number(status), code, type, body, errors: errors.split(' ; ').filter(Boolean) };
    return (['getApiKey', 'deletePaymentMethod'] as const).map((id) => ({ ...shape, id }));
  });

everywhere(
  `${says('an array of `{message, code}`, `{"detail", "code"}`, `{"field": [{"message","code"}]}`, `{"field": ["text"]}`, `non_field_errors`, nested, RFC 9457 problems, a bare string, HTML, nothing.')} ${says('its 4xx; a machine code of its own (`paid_plan_active`, `2fa_needed`) is `code`, else the name of the status; a 400 that names fields and has no code for the whole is `validation_failed`, each field in `errors`')}`,
  async ({ ask, upstream }) => {
    for (const { id, status, code, type, body, errors } of SHAPES) {
      upstream.next(id, answer(status, body, { 'content-type': type }));
      const got = await ask(id);
      expect([body, ...errorsIn(got, status, code)]).toEqual([body, ...errors]);
      const { detail, retryable, outcome } = got.json as Problem;
      const sentence = errors.map((item) => /^(\S+) - (?!\1$)(.*)/.exec(item)?.[2]).find((text) => text !== undefined);
      if (sentence !== undefined) expect(detail).toBe(sentence);
      expect([detail === code, retryable, outcome]).toEqual([false, false, undefined]);
    }
  },
);

everywhere(
  says("What is none of these is a problem with the upstream's status all the same."),
  async ({ ask, upstream }) => {
    for (const body of [HTML, '', '}{', '{"detail":"Not f', 'null', '17', '{}', deep('['), 'x'.repeat(50_000)]) {
      upstream.next('getApiKey', answer(404, body, { 'content-type': 'text/html' }));
      const got = await ask('getApiKey');
      expect(errorsIn(got, 404, 'not_found')).toEqual([]);
      expect(got.text).not.toMatch(/<|internal/);
    }
  },
);

const errorsIn = (got: Parameters<typeof expectProblem>[0], status: number, code: string): readonly string[] =>
  expectProblem(got, { status, code }).errors.map(({ field, ...one }) => `${one.code} ${field ?? '-'} ${one.message}`);

const HTML = '<!doctype html><html><body><h1>At internal.example</h1></body></html>';

const deep = (open: '[' | '{"a":') => `${open.repeat(100_000)}1${(open === '[' ? ']' : '}').repeat(100_000)}`;

const { ask, call, upstream, lines, pass } = openGateway();

describe(says("The upstream's errors come in many shapes and all are read"), () => {
  test.each(['__proto__', 'constructor', 'toString'])('with %s in them', async (name) => {
    const isLeftOut = name === '__proto__';
    const bodies = [
      [`{"${name}":["No."]}`, isLeftOut],
      [`{"${name}":{"detail":"No.","code":"no"}}`, isLeftOut],
      [`{"label":[{"message":"No.","code":"${name}"}]}`, false],
    ] as const;
    for (const [body, isNothing] of bodies) {
      upstream.next('getSubscription', answer(400, body));
      const got = await ask('getSubscription', { token: secret() });
      const { errors } = expectProblem(got, { status: 400, code: isNothing ? 'bad_request' : 'validation_failed' });
      expect(errors.map(({ message }) => message)).toEqual(isNothing ? [] : ['No.']);
    }
    expect({}).not.toHaveProperty('0');
  });

  test.each([
    ['50 KB of text', { detail: 'x'.repeat(50_000) }],
    ['50 KB of a name', [{ field: 'x'.repeat(50_000), message: 'No.' }]],
    ['ten thousand errors', Array.from({ length: 10_000 }, () => ({ message: 'x', code: '1' }))],
    ['a hundred thousand objects', deep('{"a":')],
  ])('and %s are a short problem', async (_, body) => {
    upstream.next('getSubscription', answer(404, body));
    const { status, text } = await ask('getSubscription', { token: secret() });
    expect([status, text.length < 16_384]).toEqual([404, true]);
  });
});

const FLAWS = [{ flaw: 'charset' }, { flaw: 'too_large' }, { flaw: 'cut_short' }] as const;

describe.each(FLAWS)(`${says("is a problem with the upstream's status all the same")}: a body of $flaw`, (body) => {
  test.each([401, 403, 404])('with %i', async (status) => {
    const token = secret();
    await ask('getSubscription', { token });
    await pass(400); // there is an older copy
    upstream.next('getSubscription', { status, headers: {}, body }, answer(500));
    expect((await ask('getSubscription', { token })).status).toBe(status);
    expect((await ask('getSubscription', { token })).status).toBe(502); // the copy is gone
  });
});

/** Words that stand where codes do, and may be secrets. */
const ODD_CODES =
  'pi_3nx_secret_zq81 4242424242424242 4242_4242_4242_4242 4242-4242 someone@wallet.example upstream.example Smith ' +
  'sk_live_abcdefghijklmnopqrstuvwxyz da39a3ee5e6b4b0d3255bfef95601890afd80709 0b9c7f2e-1d1a-4c0e-9d3b-6a2f1c7e8d90 ' +
  `a__b ${'code_'.repeat(13)}x`;

test.each(ODD_CODES.split(' '))(
  `${says('a machine code of its own')}: %s is none, in no answer and no log`,
  async (word) => {
    const coded = { message: 'No.', code: word };
    for (const body of [[coded], { detail: 'No.', code: word }, { code: word }, { mode: [coded] }]) {
      const from = lines.length;
      upstream.next('getSubscription', answer(402, body));
      const got = await ask('getSubscription', { token: secret() });
      const { errors } = expectProblem(got, { status: 402, code: 'payment_required' });
      expect(errors.map(({ code }) => code).filter((code) => code !== 'invalid')).toEqual([]);
      expect(got.text + JSON.stringify(lines.slice(from))).not.toContain(word);
      expect((await call(`/problems/${encodeURIComponent(word)}`)).status).toBe(404);
    }
  },
);

test.each(['2fa_needed', '3ds', 'card_declined', 'not-enough-credit', 'x', 'constructor'])(
  `${says('a machine code of its own')}: %s is sent on, logged and described`,
  async (code) => {
    upstream.next('getSubscription', answer(402, { detail: 'No.', code }));
    const { type } = expectProblem(await ask('getSubscription', { token: secret() }), { status: 402, code });
    expect(lines.at(-1)?.['code']).toBe(code);
    const page = await call(type);
    expect([page.status, page.json]).toMatchObject([200, { type, code, title: expect.stringMatching(/^[A-Z0-9]/) }]);
  },
);

/** Against the time at which the upstream is asked. */
const dateIn = (seconds: number) => new Date(START_MS + seconds * 1000).toUTCString();

describe(says("the gateway's or the upstream's limit"), () => {
  test.each([
    ['7', 7],
    [undefined, 10],
    ['0', 1],
    ['86400', 300],
    ['9'.repeat(400), 300],
    ['-5', 10],
    ['1.5', 2],
    ['soon', 10],
    [dateIn(60), 60],
    [dateIn(-60), 1],
    [dateIn(86_400), 300],
  ] as const)('of a Retry-After of %s says when to come back: %i', async (header, seconds) => {
    const gateway = openGateway(); // its clock is at the start
    gateway.upstream.next('getSubscription', answer(429, { code: 'throttled' }, { 'retry-after': header }));
    const problem = expectProblem(await gateway.ask('getSubscription'), { status: 429, code: 'rate_limited' });
    expect([problem.retry_after, problem.retryable]).toEqual([seconds, true]);
  });
});
