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
import { VERSION } from '../../../core/version.ts';
import { sparing } from '../sparing.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Told the name of a variable whose value cannot be used. */
type OnBad = (variable: string) => void;

/** How long the process may wait for a collector when it ends. */
const CLOSE_MS = 2_000;

/**
 * The SDK of OpenTelemetry, sending to the collector that its variables name. Endpoint, headers, timeout, compression and
 * certificates are read by its exporter; what is of its other parts is read here. A bad value is warned of, and the default holds.
 * `close` sends what is left, for 2 s at most.
 */
export function openSdk(env: Env, logger: Logger): { readonly tracer: Tracer; readonly close: () => Promise<void> } {
  hearTroubles(logger);
  const onBad: OnBad = (variable) => logger.warn({ variable }, 'this cannot be used for traces');
  if (env['OTEL_EXPORTER_OTLP_PROTOCOL'] === 'grpc') onBad('OTEL_EXPORTER_OTLP_PROTOCOL'); // the one that collectors take at another port
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'portico', 'service.version': VERSION }))
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    sampler: samplerOf(env, onBad),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter(), ...batchesOf(env, onBad) })],
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
function hearTroubles(logger: Logger): void {
  const tell = sparing((trouble) =>
    logger.warn(trouble.startsWith('OTEL_') ? { variable: trouble } : { reason: trouble }, 'trouble with traces'),
  );
  const hear = (...said: unknown[]) => {
    const text = said.filter((part) => typeof part === 'string').join(' ');
    tell(TROUBLE.exec(text)?.slice(1).find(Boolean) ?? 'unknown');
  };
  const heard = { error: hear, warn: hear, info: ignored, debug: ignored, verbose: ignored };
  diag.setLogger(heard, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/** A code of the system or a status of the collector; a variable; no answer in time; spans that there was no room for. */
const TROUBLE = /"code":"(\w{1,40})"|\b(OTEL_[A-Z_]{1,60})|\b(time)d? ?out\b|\b(Dropped) \d+ spans/i;

const usual = () => new ParentBasedSampler({ root: new AlwaysOnSampler() });

const SAMPLERS: Readonly<Record<string, (ratio: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
  parentbased_always_on: usual,
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (ratio) => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
};

function samplerOf(env: Env, onBad: OnBad): Sampler {
  const name = env['OTEL_TRACES_SAMPLER']?.trim() || 'parentbased_always_on';
  const make = Object.hasOwn(SAMPLERS, name) ? SAMPLERS[name] : undefined;
  if (!make) onBad('OTEL_TRACES_SAMPLER');
  const ratio = numberIn(env, { name: 'OTEL_TRACES_SAMPLER_ARG', otherwise: 1, isGood: isShare }, onBad);
  return (make ?? usual)(ratio);
}

const isShare = (value: number) => value >= 0 && value <= 1;

/** Timers take no more than that. */
const MOST = 2 ** 31 - 1;

const isCount = (value: number) => Number.isInteger(value) && value > 0 && value <= MOST;

/** With the defaults of OpenTelemetry. */
function batchesOf(env: Env, onBad: OnBad) {
  const count = (name: string, otherwise: number) =>
    numberIn(env, { name: `OTEL_BSP_${name}`, otherwise, isGood: isCount }, onBad);
  return {
    scheduledDelayMillis: count('SCHEDULE_DELAY', 5_000),
    exportTimeoutMillis: count('EXPORT_TIMEOUT', 30_000),
    maxQueueSize: count('MAX_QUEUE_SIZE', 2_048),
    maxExportBatchSize: count('MAX_EXPORT_BATCH_SIZE', 512),
  };
}

interface NumberVariable {
  readonly name: string;
  readonly otherwise: number;
  readonly isGood: (value: number) => boolean;
}

function numberIn(env: Env, { name, otherwise, isGood }: NumberVariable, onBad: OnBad): number {
  const text = env[name]?.trim();
  if (!text) return otherwise;
  const value = Number(text);
  if (isGood(value)) return value;
  onBad(name);
  return otherwise;
}
