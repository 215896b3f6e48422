import * as z from 'zod/mini';
import { type ConfigProblem, httpUrl, integer, readAs, readVariables, textsIn } from '../../../config.ts';
import { CERTIFICATES, type Kind, KEY, readPem } from '../certificates.ts';

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** One of these words, in any case. */
const oneOf = <const W extends string>(words: readonly W[], expected = words.join(' or ')) =>
  readAs(expected, (text) => words.find((word) => word === text.toLowerCase()));

/** Timers take no more than that. */
const MOST = 2 ** 31 - 1;
const count = (otherwise: number) => z._default(integer(1, MOST), otherwise);

const share = readAs('a share from 0 to 1, such as 0.01', (text) => {
  const value = Number(text);
  return value >= 0 && value <= 1 ? value : undefined;
});

/** `made`: throws if a pair cannot be used. Empty ones may be between commas. */
const pairs = (expected: string, made: (name: string, value: string) => unknown) =>
  z.optional(
    readAs(expected, (text) => {
      const parts = text.split(',').filter((part) => part.trim() !== '');
      const isGood = parts.every((part) => {
        const [name = '', ...value] = part.split('=');
        return value.length > 0 && name.trim() !== '' && works(() => made(name.trim(), decoded(value.join('='))));
      });
      return isGood ? text : undefined;
    }),
  );

const decoded = (value: string) => decodeURIComponent(value.trim());

/** Throws if it cannot be a header. */
const headers = pairs('comma-separated headers, percent-encoded, such as name=value', (name, value) => {
  return new Headers([[name, value]]);
});

const LONGEST_ATTRIBUTE = 255;
const attributes = pairs('comma-separated pairs, percent-encoded, such as name=value', (name, value) => {
  if (Math.max(name.length, value.length) > LONGEST_ATTRIBUTE) throw new RangeError('too long');
});

const pem = (kind: Kind) =>
  z.optional(readAs(kind.expected, (path) => (works(() => readPem(path, kind)) ? path : undefined)));
const certificate = pem(CERTIFICATES);
const key = pem(KEY);

function works(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

const endpoint = z.optional(httpUrl);
const protocol = z.optional(oneOf(['http/json', 'http/protobuf'], 'http/json or http/protobuf; gRPC is not spoken'));
/** As its exporter reads it, in lower case. */
const compression = z.optional(z.enum(['none', 'gzip'], 'none or gzip'));

/**
 * OpenTelemetry's own variables, and its defaults. Those that its exporter reads for itself are checked only, since it would go on
 * without them.
 * Source: OpenTelemetry, Environment Variable Specification.
 */
const variables = z.object({
  otelTracesExporter: z.optional(oneOf(['otlp', 'none'])),
  otelExporterOtlpEndpoint: endpoint,
  otelExporterOtlpTracesEndpoint: endpoint,
  otelExporterOtlpProtocol: protocol,
  otelExporterOtlpTracesProtocol: protocol,
  otelExporterOtlpHeaders: headers,
  otelExporterOtlpTracesHeaders: headers,
  otelExporterOtlpCompression: compression,
  otelExporterOtlpTracesCompression: compression,
  otelExporterOtlpTimeout: count(10_000),
  otelExporterOtlpTracesTimeout: count(10_000),
  otelExporterOtlpCertificate: certificate,
  otelExporterOtlpTracesCertificate: certificate,
  otelExporterOtlpClientCertificate: certificate,
  otelExporterOtlpTracesClientCertificate: certificate,
  otelExporterOtlpClientKey: key,
  otelExporterOtlpTracesClientKey: key,
  otelResourceAttributes: attributes,
  otelTracesSampler: z._default(oneOf(SAMPLERS, `one of ${SAMPLERS.join(', ')}`), 'parentbased_always_on'),
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
  const says = (name: string, word: string) => String(given[name]).toLowerCase() === word;
  const isThere = given['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? given['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
  const isOff = says('OTEL_TRACES_EXPORTER', 'none') || says('OTEL_SDK_DISABLED', 'true');
  return isThere === undefined || isOff ? undefined : readVariables(variables, given);
}
