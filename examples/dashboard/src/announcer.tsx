import { useEffect, useState } from 'react';

const said = new EventTarget();

/** Has screen readers say something, without moving the focus. */
export function announce(text: string): void {
  said.dispatchEvent(new CustomEvent('said', { detail: text }));
}

/** The place where it is said: it has to be there before its text changes. */
export function Announcer() {
  const [text, setText] = useState('');
  useEffect(() => {
    const listen = (event: Event) => setText((event as CustomEvent<string>).detail);
    said.addEventListener('said', listen);
    return () => said.removeEventListener('said', listen);
  }, []);
  return (
    <p className="only-read" role="status">
      {text}
    </p>
  );
}
