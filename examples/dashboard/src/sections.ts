import type { Answer } from 'portico-client';
import type { Trouble } from './problem.ts';

interface Data {
  readonly subscription: Answer<'getSubscription'>;
  readonly payment_method: Answer<'getPaymentMethod'> | null;
  readonly notifications: Answer<'listNotifications'>;
  readonly referral_config: Answer<'getReferralConfig'>;
}

export type SectionName = keyof Data;

/** One part of the page: what is there of it, and whether more is under way. */
export interface SectionState<T> {
  readonly isWaiting: boolean;
  readonly data?: T | undefined;
  /** When the upstream has sent it, in milliseconds since 1970. */
  readonly at?: number | undefined;
  /** Why nothing newer is there. */
  readonly trouble?: Trouble | undefined;
  /** Milliseconds from the request to this section. */
  readonly afterMs?: number | undefined;
}

export type Sections = { readonly [Name in SectionName]: SectionState<Data[Name]> };

export const TITLES: Readonly<Record<SectionName, string>> = {
  subscription: 'Plan',
  payment_method: 'Card',
  notifications: 'Notifications',
  referral_config: 'Referrals',
};

export const NAMES = Object.keys(TITLES) as SectionName[];

/** Changes what is known of a section. */
export type Change = (name: SectionName, next: (before: SectionState<unknown>) => SectionState<unknown>) => void;

/** Shown is what was read last, but dimmed. Where nothing was, the trouble is shown in its place. */
export const isOld = ({ data, trouble }: SectionState<unknown>) => data !== undefined && trouble !== undefined;
