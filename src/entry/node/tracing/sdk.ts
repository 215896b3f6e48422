import { diag, DiagLogLevel, type Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../../core/logger.ts';
import { OncePerMinute } from '../../../core/once-per-minute.ts';
import { VERSION } from '../../../core/version.ts';
import type { TraceSettings } from './variables.ts';

/** How long the process may wait for a collector when it ends. */
const CLOSE_MS = 2_000;

/**
 * The SDK of OpenTelemetry, sending to the collector that its variables name. Endpoint, headers, timeout, compression and certificates
 * are read by its exporter. `close` sends what is left, for 2 s at most.
 */
export function openSdk(
  settings: TraceSettings,
  logger: Logger,
): { readonly tracer: Tracer; readonly close: () => Promise<void> } {
  hearTroubles(logger, (settings.otelExporterOtlpTracesEndpoint ?? settings.otelExporterOtlpEndpoint)?.host);
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'portico', 'service.version': VERSION }))
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    sampler: SAMPLER_OF[settings.otelTracesSampler](settings.otelTracesSamplerArg),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter(),
        scheduledDelayMillis: settings.otelBspScheduleDelay,
        exportTimeoutMillis: settings.otelBspExportTimeout,
        maxQueueSize: settings.otelBspMaxQueueSize,
        maxExportBatchSize: Math.min(settings.otelBspMaxExportBatchSize, settings.otelBspMaxQueueSize),
      }),
    ],
  });
  return {
    tracer: provider.getTracer('portico', VERSION),
    async close() {
      const done = provider.shutdown().catch(() => undefined); // the troubles have been told
      await Promise.race([done, delay(CLOSE_MS, undefined, { ref: false })]);
    },
  };
}

const ignored = () => undefined;

/** What the SDK says may quote anything, a collector's answer too: only codes, and names of variables, are logged. */
function hearTroubles(logger: Logger, host: string | undefined): void {
  const warnings = new OncePerMinute();
  const hear = (...said: unknown[]) => {
    const text = said.filter((part) => typeof part === 'string').join(' ');
    const trouble = TROUBLE.exec(text)?.slice(1).find(Boolean) ?? 'unknown';
    if (!warnings.isDue(trouble, performance.now())) return;
    const told = trouble.startsWith('OTEL_') ? { variable: trouble } : { reason: trouble };
    logger.warn({ ...told, ...(host !== undefined && { host }) }, 'trouble with traces');
  };
  const heard = { error: hear, warn: hear, info: ignored, debug: ignored, verbose: ignored };
  diag.setLogger(heard, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/** A code of the system or a status of the collector; a variable; no answer in time; spans that there was no room for. */
const TROUBLE = /"code":"(\w{1,40})"|\b(OTEL_[A-Z_]{1,60})|\b(time)d? ?out\b|\b(Dropped) \d+ spans/i;

const SAMPLER_OF: Readonly<Record<TraceSettings['otelTracesSampler'], (share: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (share) => new TraceIdRatioBasedSampler(share),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (share) => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
};
