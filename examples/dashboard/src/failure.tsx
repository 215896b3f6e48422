import type { Trouble } from './problem.ts';

interface Props {
  readonly trouble: Trouble;
  readonly onRetry: () => unknown;
}

/** The button goes away when it is pressed. The focus goes to the title of its part, instead of nowhere. */
function focusTitle(button: HTMLElement): void {
  button.closest('section')?.querySelector('h2')?.focus();
}

/** Why something is not there, what to name when asking about it, and the way to try again. */
export function Failure({ trouble: { code, detail, requestId, retryAfter }, onRetry }: Props) {
  return (
    <div className="failure" role="alert">
      <p>{detail}</p>
      <p className="small">
        <code>{code}</code>
        {retryAfter !== undefined && <> · it may work in {retryAfter} s</>}
        {requestId !== '' && (
          <>
            {' '}
            · request <code>{requestId}</code>
          </>
        )}
      </p>
      <button
        type="button"
        onClick={({ currentTarget }) => {
          focusTitle(currentTarget);
          void onRetry();
        }}
      >
        Try again
      </button>
    </div>
  );
}
