const LEAST = 32;

export const A_SECRET = `a secret of ${LEAST} characters or more`;

/** Anybody can read them in this repository. */
const PUBLISHED = ['for-development-only-and-known-to-all', 'for-this-machine-only-0123456789abcdef'];

/** What was expected instead of one that cannot be used. */
export const expectedSecret = ({ length }: string): string | undefined => (length < LEAST ? A_SECRET : undefined);

/** As `expectedSecret`, for production: there a published secret is refused too. */
export const expectedOwnSecret = (secret: string): string | undefined =>
  PUBLISHED.includes(secret)
    ? 'a secret of your own, since NODE_ENV is production: this one is public'
    : expectedSecret(secret);
