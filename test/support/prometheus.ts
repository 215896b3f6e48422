import { isInstalled } from '../deploy/files.ts';

/** Without Prometheus and its promtool their tests say so and are skipped; in CI that is a failure. */
export const hasPrometheus = isInstalled('promtool') && isInstalled('prometheus');

export const SKIPPED = hasPrometheus ? '' : ' (skipped: prometheus and promtool are not installed)';
