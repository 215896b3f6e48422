import { Facts } from './facts.tsx';
import { type Call, useCalls } from './gateway-log.ts';
import { Panel } from './panel.tsx';

const SHOWN = 30;

const bytes = (number: number) => `${number.toLocaleString('en')} B`;
const sum = (calls: readonly Call[], sizeOf: (call: Call) => number | undefined) =>
  bytes(calls.reduce((total, call) => total + (sizeOf(call) ?? 0), 0));

/** What the page has asked for, and what the gateway has spared it and the upstream. */
export function GatewayDrawer() {
  const calls = useCalls();
  const count = (is: (call: Call) => boolean | undefined) => calls.filter(is).length;
  return (
    <Panel title="What the gateway did" drawer="gateway">
      <Facts
        of={{
          Calls: calls.length,
          'Answered from its copies': count(({ cacheStatus }) => cacheStatus?.includes('hit')),
          'Nothing new (304)': count(({ status }) => status === 304),
          'Changed sections only': count(({ isPart }) => isPart),
          Received: sum(calls, ({ sent }) => sent),
          'Not sent': sum(calls, ({ notSent }) => notSent),
        }}
      />
      <p className="small">
        Bytes of bodies. Not sent is what the page had already, and what compression has saved. Newest calls first:
      </p>
      <ol className="calls">
        {calls
          .slice(-SHOWN)
          .toReversed()
          .map((call) => (
            <Entry key={call.number} call={call} />
          ))}
      </ol>
    </Panel>
  );
}

function Entry({ call: { method, url, status, cacheStatus, sent, notSent } }: { readonly call: Call }) {
  const { pathname, search } = new URL(url);
  return (
    <li>
      <code>
        {method} {pathname}
        {decodeURIComponent(search)}
      </code>
      <p className="small">
        <b>{status === undefined ? 'waiting' : status || 'no answer'}</b>
        {cacheStatus && <> · {cacheStatus.replace(/^portico; /, '')}</>}
        {sent !== undefined && <> · {bytes(sent)}</>}
        {notSent !== undefined && notSent > 0 && <> · {bytes(notSent)} not sent</>}
      </p>
    </li>
  );
}
