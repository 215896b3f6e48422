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

/**
 * The SDK of OpenTelemetry, sending to the collector that its variables name: its exporter reads where and how. Those of the sampler
 * and of batches it leaves to us. `close` sends what is left; the process waits 2 s for that at most.
 */
export function openSdk(endpoint: string, logger: Logger): { tracer: Tracer; close: () => Promise<void> } {
  hearTroubles(logger, URL.parse(endpoint)?.host);
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'portico', 'service.version': VERSION }))
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    sampler: samplerIn(process.env),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter(),
        scheduledDelayMillis: countIn('OTEL_BSP_SCHEDULE_DELAY', 5_000),
        exportTimeoutMillis: countIn('OTEL_BSP_EXPORT_TIMEOUT', 30_000),
        maxQueueSize: countIn('OTEL_BSP_MAX_QUEUE_SIZE', 2_048),
        maxExportBatchSize: countIn('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512),
      }),
    ],
  });
  return {
    tracer: provider.getTracer('portico', VERSION),
    async close() {
      const done = provider.shutdown().catch(() => undefined); // the troubles have been told
      await Promise.race([done, delay(2_000, undefined, { ref: false })]);
    },
  };
}

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
  const logLevel = DiagLogLevel.WARN; // the others are not heard
  diag.setLogger(
    { error: hear, warn: hear, info: hear, debug: hear, verbose: hear },
    { logLevel, suppressOverrideMessage: true },
  );
}

/** A code of the system or a status of the collector; a variable; no answer in time; spans that there was no room for. */
const TROUBLE = /"code":"([\w/]{1,80})"|\b(OTEL_[A-Z_]{1,60})|\b(time)d? ?out\b|\b(Dropped) \d+ spans/i;

const countIn = (name: string, otherwise: number): number => {
  const count = Number(process.env[name]);
  return count > 0 && count < 2 ** 31 ? count : otherwise; // a timer takes no more
};

function samplerIn({ OTEL_TRACES_SAMPLER = '', OTEL_TRACES_SAMPLER_ARG }: NodeJS.ProcessEnv): Sampler {
  const [, isByParent, name] = /^(parentbased_)?(.*)$/.exec(OTEL_TRACES_SAMPLER.trim().toLowerCase()) ?? [];
  const samplers: Readonly<Record<string, Sampler>> = {
    always_on: new AlwaysOnSampler(),
    always_off: new AlwaysOffSampler(),
    traceidratio: new TraceIdRatioBasedSampler(Number(OTEL_TRACES_SAMPLER_ARG || 1)),
  };
  const root = samplers[name ?? ''];
  return root && !isByParent ? root : new ParentBasedSampler({ root: root ?? new AlwaysOnSampler() });
}
