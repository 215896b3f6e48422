import { type ProxyTracerProvider, trace, type Tracer } from '@opentelemetry/api';
import type { ConfigProblem } from '../../../config.ts';
import type { Logger } from '../../../core/logger.ts';
import { VERSION } from '../../../core/version.ts';
import { Spans } from './spans.ts';
import { type TraceSettings, traceSettingsIn } from './variables.ts';

/**
 * Spans go to the provider that a host has registered; else, where a variable of OpenTelemetry's says where to, to a collector, by its
 * SDK, which is loaded only then; else there are none. `opened`: looks once more for a host's, and resolves when the SDK is there.
 */
export function openTraces(upstream: URL, logger: Logger) {
  const tracing = new Spans(upstream);
  tracing.tracer = tracerOfHost();
  const settings = tracing.tracer ? undefined : traceSettingsIn(process.env);
  const loading = settings && 'data' in settings ? load(settings.data) : undefined;
  async function load(given: TraceSettings) {
    const { openSdk } = await import('./sdk.ts');
    tracing.tracer = tracerOfHost(); // it may have registered its own since
    if (tracing.tracer) return undefined;
    const sdk = openSdk(given, logger);
    tracing.tracer = sdk.tracer;
    return sdk;
  }
  return {
    tracing,
    opened: async (): Promise<void> => {
      await loading;
      tracing.tracer ??= tracerOfHost();
    },
    /** Sends what is left, if that is possible soon. */
    close: async (): Promise<void> => {
      await (await loading)?.close();
    },
  };
}

/** What is wrong with OpenTelemetry's variables, unless a host reads them for itself. */
export function traceProblems(): readonly ConfigProblem[] {
  const settings = tracerOfHost() ? undefined : traceSettingsIn(process.env);
  return settings && 'problems' in settings ? settings.problems : [];
}

/** The global provider is a proxy until somebody registers one, and then it is one too. */
function tracerOfHost(): Tracer | undefined {
  const provider = trace.getTracerProvider();
  return 'getDelegateTracer' in provider
    ? (provider as ProxyTracerProvider).getDelegateTracer('portico', VERSION)
    : provider.getTracer('portico', VERSION);
}
