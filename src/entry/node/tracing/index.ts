import { type ProxyTracerProvider, trace, type Tracer } from '@opentelemetry/api';
import type { Logger } from '../../../core/logger.ts';
import { VERSION } from '../../../core/version.ts';
import { Spans } from './spans.ts';

/**
 * Spans go to the provider that a host has registered; else, where a variable of OpenTelemetry's says where to, to a collector, by its
 * SDK, which is loaded only then; else there are none. `opened` looks once more for a host's, and resolves when the SDK is there.
 */
export function openTraces(upstream: URL, logger: Logger) {
  const tracing = new Spans(upstream);
  tracing.tracer = tracerOfHost();
  const endpoint = tracing.tracer ? undefined : endpointIn(process.env);
  const loading = endpoint === undefined ? undefined : load(endpoint);
  async function load(at: string) {
    const { openSdk } = await import('./sdk.ts');
    tracing.tracer = tracerOfHost(); // it may have registered its own since
    if (tracing.tracer) return undefined;
    const sdk = openSdk(at, logger);
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
    close: async (): Promise<void> => (await loading)?.close(),
  };
}

/** Undefined where no variable says where spans go, or one says that there are none. */
function endpointIn(env: NodeJS.ProcessEnv): string | undefined {
  const read = (name: string) => env[`OTEL_${name}`]?.trim();
  const isOff = /^none$/i.test(read('TRACES_EXPORTER') ?? '') || /^true$/i.test(read('SDK_DISABLED') ?? '');
  return isOff ? undefined : read('EXPORTER_OTLP_TRACES_ENDPOINT') || read('EXPORTER_OTLP_ENDPOINT') || undefined;
}

/** The global provider is a proxy, which has nobody's tracers until somebody registers a provider; an agent may replace it. */
function tracerOfHost(): Tracer | undefined {
  const provider = trace.getTracerProvider();
  return 'getDelegateTracer' in provider
    ? (provider as ProxyTracerProvider).getDelegateTracer('portico', VERSION)
    : provider.getTracer('portico', VERSION);
}
