import { type InputHTMLAttributes, useEffect, useId, useRef } from 'react';

interface Props extends InputHTMLAttributes<HTMLInputElement> {
  readonly label: string;
  readonly hint?: string;
  /** What the gateway says of it. */
  readonly errors?: readonly string[];
}

/** An input with its label and its errors. A new error gets the focus, and so is read out with the input. */
export function Field({ label, hint, errors = [], ...input }: Props) {
  const id = useId();
  const element = useRef<HTMLInputElement>(null);
  const error = errors.join(' ');
  useEffect(() => {
    if (error !== '') element.current?.focus();
  }, [error]);

  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input {...input} ref={element} id={id} aria-invalid={error !== ''} aria-describedby={`${id}-error ${id}-hint`} />
      <p id={`${id}-error`} className="field-error">
        {error}
      </p>
      <p id={`${id}-hint`} className="small">
        {hint}
      </p>
    </div>
  );
}
