import type { proxy as rows } from '../../../src/proxy-account/proxy.ts';
import { byId, noContent, ok, planOf, type Call, type Handler } from '../call.ts';
import { Refusal } from '../errors.ts';
import type { OfPlan } from '../state.ts';
import { listActivity } from './activity.ts';

/** The item whose id is in the path, on the plan of the query. */
function byIdAndPlan<T extends OfPlan & { id: number | string }>(items: readonly T[], call: Call): T {
  const plan = planOf(call);
  const there = items.filter(({ planId }) => planId === plan.id);
  return byId(there, call.id);
}

export const proxyHandlers: Record<keyof typeof rows, Handler> = {
  getSubuser: (call) => ok(byIdAndPlan(call.account.subusers, call)),

  refreshSubuser: (call) => {
    const subuser = byIdAndPlan(call.account.subusers, call);
    if (!subuser.hasCustomList) {
      const message = 'Only a sub-user with a custom proxy list can be refreshed.';
      // `detail` is a text everywhere else: the upstream has been seen to answer so.
      throw new Refusal(400, { detail: [{ message, code: 'custom_proxy_list_required' }] });
    }
    subuser.updated_at = call.now;
    return ok(subuser);
  },

  getIpAuthorization: (call) => ok(byIdAndPlan(call.account.ipAuthorizations, call)),

  deleteIpAuthorization: (call) => {
    const deleted = byIdAndPlan(call.account.ipAuthorizations, call);
    call.account.ipAuthorizations = call.account.ipAuthorizations.filter((one) => one !== deleted);
    return noContent;
  },

  refreshProxyList: (call) => {
    const plan = planOf(call);
    if (plan.refreshesAvailable <= 0) {
      const message = 'No on-demand refreshes are left on this plan.';
      throw new Refusal(400, { non_field_errors: [{ message, code: 'no_on_demand_refreshes_available' }] });
    }
    plan.refreshesAvailable -= 1;
    return noContent;
  },

  listProxyActivity: listActivity,
};
