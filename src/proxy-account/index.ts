export { accountOverview, billingOverview, overviews, referralOverview } from './overviews.ts';
export { proxyAccount } from './rows.ts';
