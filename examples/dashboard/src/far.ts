import { measure, type Way } from './measure.ts';

// The page as one that is far away from its server has it: all it asks for goes over the line that it came by.

window.addEventListener('message', ({ data, source, origin }: MessageEvent<Way>) => {
  const reply = (load: unknown) => source?.postMessage(load, { targetOrigin: origin });
  void measure(data).then(reply, (error: unknown) => reply(String(error)));
});
window.parent.postMessage('ready', '*');
