import * as z from 'zod/mini';
import { type ConfigProblem, httpUrl, integer, readAs, readVariables, textsIn } from '../../../config.ts';

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** Timers take no more than that. */
const MOST = 2 ** 31 - 1;
const count = (otherwise: number) => z._default(integer(1, MOST), otherwise);

const share = readAs('a share from 0 to 1, such as 0.01', (text) => {
  const value = Number(text);
  return value >= 0 && value <= 1 ? value : undefined;
});

const pairs = z.optional(
  z.string().check(z.refine((text) => text.split(',').every(isPair), 'comma-separated pairs, such as name=value')),
);
const isPair = (text: string) => text.trim() === '' || text.trim().indexOf('=') > 0;

/** What collectors take at the port for HTTP. */
const protocol = z.optional(z.enum(['http/json', 'http/protobuf'], 'http/json, since gRPC is not spoken'));
const compression = z.optional(z.enum(['none', 'gzip']));

/**
 * OpenTelemetry's own variables, and its defaults. Those that its exporter reads for itself are checked only, since it would go on
 * without them.
 * Source: OpenTelemetry, Environment Variable Specification.
 */
const variables = z.object({
  otelExporterOtlpEndpoint: z.optional(httpUrl),
  otelExporterOtlpTracesEndpoint: z.optional(httpUrl),
  otelExporterOtlpProtocol: protocol,
  otelExporterOtlpTracesProtocol: protocol,
  otelExporterOtlpHeaders: pairs,
  otelExporterOtlpTracesHeaders: pairs,
  otelExporterOtlpCompression: compression,
  otelExporterOtlpTracesCompression: compression,
  otelExporterOtlpTimeout: count(10_000),
  otelExporterOtlpTracesTimeout: count(10_000),
  otelResourceAttributes: pairs,
  otelTracesSampler: z._default(z.enum(SAMPLERS, `one of ${SAMPLERS.join(', ')}`), 'parentbased_always_on'),
  otelTracesSamplerArg: z._default(share, 1),
  otelBspScheduleDelay: count(5_000),
  otelBspExportTimeout: count(30_000),
  otelBspMaxQueueSize: count(2_048),
  otelBspMaxExportBatchSize: count(512),
});

export type TraceSettings = z.output<typeof variables>;

type Read = { readonly data: TraceSettings } | { readonly problems: readonly ConfigProblem[] };

/** Undefined where no variable says where spans go, or one says that there are none. */
export function traceSettingsIn(env: NodeJS.ProcessEnv): Read | undefined {
  const trimmed = Object.entries(env).map(([name, value]) => [name, value?.trim()] as const);
  const given = textsIn(Object.fromEntries(trimmed));
  const isThere = given['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? given['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
  const isOff = given['OTEL_TRACES_EXPORTER'] === 'none' || String(given['OTEL_SDK_DISABLED']).toLowerCase() === 'true';
  return isThere === undefined || isOff ? undefined : readVariables(variables, given);
}
