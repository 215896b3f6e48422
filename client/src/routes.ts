import type { operations as Known, paths } from './openapi.ts';
import type { Registered } from './registered.ts';

/** Of the gateway that is called. */
export type Operations = Registered extends { readonly operations: infer Own } ? Own : Known;

/** Name of a call: its `operationId` in the OpenAPI document. */
export type OperationId = keyof Operations;

/** Method and path of every operation. */
export type Routes = Readonly<Record<OperationId, string>>;

type Route = `${'GET' | 'DELETE'} ${keyof paths}` | `${'POST' | 'PATCH'} ${keyof paths}${'' | '?'}`;

/**
 * Method and path of every operation, as in the OpenAPI document. Input that is not in the path is the query of a GET or
 * DELETE, and the body of a POST or PATCH. A `?` at the end: it takes no body, and its input is the query.
 */
export const routes: Readonly<Record<keyof Known, Route>> = {
  getAccountOverview: 'GET /bff/v1/account-overview',
  getBillingOverview: 'GET /bff/v1/billing-overview',
  getReferralOverview: 'GET /bff/v1/referral-overview',
  batch: 'POST /bff/v1/batch',
  getOutcome: 'GET /bff/v1/outcome',
  getSession: 'GET /bff/v1/session',
  createSession: 'POST /bff/v1/session',
  deleteSession: 'DELETE /bff/v1/session',
  loginSession: 'POST /bff/v1/session/login',
  registerSession: 'POST /bff/v1/session/register',
  getApiKey: 'GET /api/v2/apikey/{id}/',
  createApiKey: 'POST /api/v2/apikey/',
  listPaymentMethods: 'GET /api/v2/payment/method/',
  deletePaymentMethod: 'DELETE /api/v2/payment/method/',
  getPaymentMethod: 'GET /api/v2/payment/method/{id}/',
  listTransactions: 'GET /api/v2/payment/transaction/',
  getTransaction: 'GET /api/v2/payment/transaction/{id}/',
  listPendingPayments: 'GET /api/v2/payment/pending/',
  getPendingPayment: 'GET /api/v2/payment/pending/{id}/',
  purchasePlan: 'POST /api/v2/subscription/checkout/purchase/',
  getSubscription: 'GET /api/v2/subscription/',
  getReferralConfig: 'GET /api/v2/referral/config/',
  updateReferralConfig: 'PATCH /api/v2/referral/config/',
  listReferralCredits: 'GET /api/v2/referral/credit/',
  getReferralCredit: 'GET /api/v2/referral/credit/{id}/',
  listEarnOuts: 'GET /api/v2/referral/earnout/',
  getEarnOut: 'GET /api/v2/referral/earnout/{id}/',
  listReferralChannels: 'GET /api/v2/referral/channel/',
  getSubuser: 'GET /api/v2/subuser/{id}/',
  refreshSubuser: 'POST /api/v2/subuser/{id}/refresh/?',
  getIpAuthorization: 'GET /api/v2/proxy/ipauthorization/{id}/',
  deleteIpAuthorization: 'DELETE /api/v2/proxy/ipauthorization/{id}/',
  refreshProxyList: 'POST /api/v2/proxy/list/refresh/?',
  listProxyActivity: 'GET /api/v2/proxy/activity/',
  listNotifications: 'GET /api/v2/notification/',
  startIdVerification: 'POST /api/v2/idverification/start/',
  getVerificationFlow: 'GET /api/v2/verification/flow/{id}/',
  registerSocial: 'POST /api/v2/register/social/',
  loginSocial: 'POST /api/v2/login/social/',
};
