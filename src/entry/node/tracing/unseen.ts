import { context, createContextKey, ROOT_CONTEXT } from '@opentelemetry/api';

/** OpenTelemetry's SDK and propagators know it by this name. */
const QUIET = ROOT_CONTEXT.setValue(createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING'), true);

/** What a host's instrumentations are not to see: they would tell of an attempt once more, and send a second `traceparent`. */
export const unseen = <T>(run: () => T): T => context.with(QUIET, run);
