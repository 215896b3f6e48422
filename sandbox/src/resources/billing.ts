import type { Instant } from '../time.ts';
import type { Dated } from './dated.ts';

/** A payment method as a transaction embeds it. */
export interface EmbeddedPaymentMethod extends Dated {
  id: number;
  brand: string;
  last4: string;
  name: string | null;
  expiration_year: number;
  expiration_month: number;
}

export interface PaymentMethod extends EmbeddedPaymentMethod {
  type: string;
  line: string;
  city: string;
  state: string | null;
  postal_code: string;
  country: string;
}

export interface Transaction extends Dated {
  id: number;
  status: string;
  payment_method: EmbeddedPaymentMethod | null;
  reason: string;
  amount: number;
  credits_used: number;
  credits_gained: number;
  refund_amount: number;
  refund_date: Instant | null;
}

export interface PendingPayment extends Dated {
  id: number;
  status: string;
  failure_reason: string | null;
  payment_method: number;
  plan: number;
  transaction: number | null;
  is_renewal: boolean;
  term: string;
  completed_at: Instant | null;
}

export interface Subscription extends Dated {
  id: number;
  plan: number;
  payment_method: number | null;
  free_credits: number;
  term: string;
  start_date: Instant;
  end_date: Instant;
  renewals_paid: number;
  renewals_enabled: boolean;
  failed_payment_times: number;
  account_discount_percentage: number;
  promotion_available_first_time_renewal_25_off: boolean;
  customizable: boolean;
  paused: boolean;
  reactivation_date: Instant | null;
  reactivation_period_left: string | null;
  promo_type: string | null;
  promo_value: number | null;
  retention_discount_resi_20_available: boolean;
  throttled: boolean;
}
