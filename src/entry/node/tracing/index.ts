import { type ProxyTracerProvider, trace, type Tracer } from '@opentelemetry/api';
import type { Logger } from '../../../core/logger.ts';
import { VERSION } from '../../../core/version.ts';
import { Spans } from './spans.ts';

/**
 * Spans go to the provider that a host has registered; else, where a variable of OpenTelemetry's says where to, to a collector, by its
 * SDK, which is loaded only then; else there are none. `opened`: looks once more for a host's, and resolves when the SDK is there.
 */
export function openTraces(upstream: URL, logger: Logger) {
  const tracing = new Spans(upstream);
  tracing.tracer = tracerOfHost();
  const loading = tracing.tracer || !isWanted(process.env, logger) ? undefined : load();
  async function load() {
    const { openSdk } = await import('./sdk.ts');
    tracing.tracer = tracerOfHost(); // it may have registered its own since
    if (tracing.tracer) return undefined;
    const sdk = openSdk(process.env, logger);
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

/** The global provider is a proxy until somebody registers one, and then it is one too. */
function tracerOfHost(): Tracer | undefined {
  const provider = trace.getTracerProvider();
  return 'getDelegateTracer' in provider
    ? (provider as ProxyTracerProvider).getDelegateTracer('portico', VERSION)
    : provider.getTracer('portico', VERSION);
}

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;

/** The SDK would send to this machine where the endpoint cannot be read. */
function isWanted(env: NodeJS.ProcessEnv, logger: Logger): boolean {
  const variable = ENDPOINTS.find((name) => env[name]?.trim());
  const isOff = env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none';
  if (variable === undefined || isOff) return false;
  const isUrl = ['http:', 'https:'].includes(URL.parse(env[variable] ?? '')?.protocol ?? '');
  if (!isUrl) logger.warn({ variable }, 'there are no traces, since this is no http:// or https:// URL');
  return isUrl;
}
