import { isOld, NAMES, type Sections, TITLES } from './sections.ts';
import { clock } from './words.ts';

const WHY: Readonly<Record<string, string>> = {
  upstream_timeout: 'The upstream takes too long.',
  upstream_unreachable: 'The upstream cannot be reached.',
  upstream_unavailable: 'The upstream is not available.',
  rate_limited: 'The upstream wants to be asked less often.',
  connection_failed: 'The gateway cannot be reached.',
};

interface Props {
  readonly sections: Sections;
  readonly onRetry: () => void;
}

/** One for all that is dimmed: why, what, and from when it is. */
export function Banner({ sections, onRetry }: Props) {
  const old = NAMES.filter((name) => isOld(sections[name]));
  const oldest = Math.min(...old.map((name) => sections[name].at ?? Date.now()));
  const code = old.map((name) => sections[name].trouble?.code)[0] ?? '';
  return (
    <div role="status" className="banner-place">
      {old.length > 0 && (
        <div className="banner">
          <p>
            {WHY[code] ?? 'The upstream does not answer as it should.'} Dimmed is what was read last, at {clock(oldest)}
            : {old.map((name) => TITLES[name]).join(', ')}. The page goes on asking. <code>{code}</code>
          </p>
          <button type="button" onClick={onRetry}>
            Try now
          </button>
        </div>
      )}
    </div>
  );
}
