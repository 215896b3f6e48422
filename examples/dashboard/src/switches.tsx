import { useEffect, useState } from 'react';
import { Panel } from './panel.tsx';
import { setFaults, type SwitchName, switches } from './sandbox.ts';

const SHOWN: readonly SwitchName[] = ['slow', 'failing', 'limited', 'cutOff'];

/** There is one sandbox: what one tab switches on is on for all. */
const tabs = new BroadcastChannel('switches');

/** Makes the sandbox misbehave, so that one sees what the gateway and the client do about it. */
export function Switches() {
  const [on, setOn] = useState<ReadonlySet<SwitchName>>(new Set());
  const [underWay, setUnderWay] = useState(0);

  async function turn(next: ReadonlySet<SwitchName>) {
    setOn(next);
    setUnderWay((before) => before + 1);
    tabs.postMessage(next);
    await setFaults(next);
    setUnderWay((before) => before - 1);
  }

  useEffect(() => {
    const heard = ({ data }: MessageEvent<ReadonlySet<SwitchName>>) => setOn(data);
    tabs.addEventListener('message', heard);
    void turn(new Set()); // what an earlier visit has switched on
    return () => tabs.removeEventListener('message', heard);
  }, []);

  const without = (name: SwitchName) => new Set([...on].filter((other) => other !== name));
  const toggle = (name: SwitchName) => void turn(on.has(name) ? without(name) : new Set([...on, name]));

  return (
    <Panel title="Make it fail" isBusy={underWay > 0} drawer="faults">
      <ul className="switches">
        {SHOWN.map((name) => (
          <li key={name}>
            <label>
              <input
                type="checkbox"
                role="switch"
                checked={on.has(name)}
                onChange={() => toggle(name)}
                aria-describedby={`look-${name}`}
              />
              {switches[name].label}
            </label>
            <p id={`look-${name}`}>{switches[name].look}</p>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
