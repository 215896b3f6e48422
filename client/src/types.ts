import type { LineError, ProblemCode } from './openapi.ts';
import type { OperationId, Operations as operations } from './routes.ts';

/** Makes types readable where an editor shows them. */
type Shown<T> = { [Key in keyof T]: T[Key] } & {};

type Parameter<Id extends OperationId, In extends 'path' | 'query'> = NonNullable<operations[Id]['parameters'][In]>;
type OrNone<T> = [T] extends [never] ? unknown : T;
/** Ids may be numbers or texts. */
type PathOf<Id extends OperationId> = { [Key in keyof OrNone<Parameter<Id, 'path'>>]: string | number };
/** `true` will do for `'true'`, and what is undefined is left out. */
type QueryOf<Id extends OperationId> =
  OrNone<Parameter<Id, 'query'>> extends infer Query
    ? { [Key in keyof Query]: Query[Key] | ('true' extends Query[Key] ? boolean : never) | undefined }
    : never;

type JsonBody<Body> = { content: { 'application/json': Body } };
type BodyOf<Id extends OperationId> = [NonNullable<operations[Id]['requestBody']>] extends [never]
  ? unknown
  : operations[Id] extends { requestBody: JsonBody<infer Body> }
    ? Body
    : operations[Id] extends { requestBody?: JsonBody<infer Body> }
      ? Partial<Body>
      : never;

type WithPath<Id extends OperationId, Rest> = Shown<PathOf<Id> & Rest>;

/** What an operation is given: the ids of its path, and its query or its body. */
export type Input<Id extends OperationId> = Id extends OverviewId
  ? OverviewInput<Id>
  : WithPath<Id, QueryOf<Id>> & BodyOf<Id>;

type Responses<Id extends OperationId> = operations[Id]['responses'];
type Content<Response> = Response extends { content: infer Types } ? Types : { none: true };
/** By media type. */
type Contents<Id extends OperationId> = {
  [Status in keyof Responses<Id>]: Content<Responses<Id>[Status]>;
}[keyof Responses<Id>];
type Json<Id extends OperationId> = Contents<Id> extends { 'application/json': infer Body } ? Body : undefined;

/** What an operation answers. An overview has no more than was asked for. */
export type Answer<Id extends OperationId, Asked = object> = Id extends OverviewId ? OverviewOf<Id, Asked> : Json<Id>;

/** Operations that answer a page of a list. */
export type ListId = {
  [Id in OperationId]: Json<Id> extends { results: readonly unknown[] } ? Id : never;
}[OperationId];
/** One entry of such a list. */
export type Item<Id extends ListId> = Json<Id> extends { results: readonly (infer One)[] } ? One : never;

/** Operations that answer several sections at once. */
export type OverviewId = {
  [Id in OperationId]: Contents<Id> extends { 'application/x-ndjson': unknown } ? Id : never;
}[OperationId];

/** Those without an id in their path. */
export type PlainOverviewId = { [Id in OverviewId]: object extends OverviewInput<Id> ? Id : never }[OverviewId];

type Data<Id extends OverviewId> = Json<Id> extends { data: infer All } ? Required<All> : never;
type SectionOf<Id extends OverviewId> = keyof Data<Id> & string;
type FieldOf<Id extends OverviewId, Section extends string> =
  Parameter<Id, 'query'> extends { [Key in `fields[${Section}]`]?: readonly (infer Field)[] } ? Field : never;

/** Sections that are a page. */
type PageOf<Id extends OverviewId> = {
  [Section in SectionOf<Id>]: NonNullable<Data<Id>[Section]> extends { results: readonly unknown[] } ? Section : never;
}[SectionOf<Id>];

/** What an overview is given: the ids of its path, and what is wanted of it. */
export type OverviewInput<Id extends OverviewId> = WithPath<Id, Selection<Id>>;

/** Which sections, and which of their fields; all unless named. How many entries of those that are pages. */
export interface Selection<Id extends OverviewId> {
  readonly sections?: readonly SectionOf<Id>[] | undefined;
  readonly fields?: { readonly [Section in SectionOf<Id>]?: readonly FieldOf<Id, Section>[] | undefined } | undefined;
  readonly page_size?: { readonly [Section in PageOf<Id>]?: number | undefined } | undefined;
}

type Wanted<Id extends OverviewId, Asked> = Asked extends { readonly sections: readonly (infer Section)[] }
  ? Section & SectionOf<Id>
  : SectionOf<Id>;

/** `true`, or never. */
type IsUnion<T, Whole = T> = T extends unknown ? ([Whole] extends [T] ? never : true) : never;
/** `true` for a list of which nobody knows what is in it when it is compiled: of any length, or with one thing or another. */
type IsOpenList<List> = List extends readonly unknown[]
  ? number extends List['length']
    ? true
    : { [Index in keyof List]: IsUnion<List[Index]> }[number]
  : true;
/** Such a list of sections says only what may be in the answer. */
type IsOpen<Asked> = 'sections' extends keyof Asked
  ? true extends IsUnion<Asked['sections']> | IsOpenList<Asked['sections']>
    ? true
    : false
  : false;

type Trimmed<Value, Field, IsSome> = Value extends null
  ? null
  : Value extends { results: readonly (infer One)[]; count: infer Count }
    ? { count: Count; next: string | null; previous: string | null; results: Kept<One, Field, IsSome>[] }
    : Value extends readonly (infer One)[]
      ? Kept<One, Field, IsSome>[]
      : Kept<Value, Field, IsSome>;
type Kept<Value, Field, IsSome> = true extends IsSome
  ? Partial<Pick<Value, Field & keyof Value>>
  : Pick<Value, Field & keyof Value>;

type SectionData<Id extends OverviewId, Section extends SectionOf<Id>, Asked> = Asked extends {
  readonly fields: { readonly [Key in Section]: infer List extends readonly unknown[] };
}
  ? Trimmed<Data<Id>[Section], List[number], IsOpenList<List>>
  : MayTrim<Asked, Section> extends true
    ? Trimmed<Data<Id>[Section], FieldOf<Id, Section>, true>
    : Data<Id>[Section];
/** Whether nobody knows when it is compiled if fields of this section are named. */
type MayTrim<Asked, Section> = 'fields' extends keyof Asked
  ? Section extends keyof NonNullable<Asked['fields']>
    ? true
    : false
  : false;

type Sections<Id extends OverviewId, Asked, Values> =
  IsOpen<Asked> extends true
    ? { [Section in Wanted<Id, Asked>]?: Values[Section & keyof Values] }
    : { [Section in Wanted<Id, Asked>]: Values[Section & keyof Values] };

/** An overview with the sections and fields that were asked for. */
export type OverviewOf<Id extends OverviewId, Asked = object> = Shown<
  Omit<Json<Id>, 'data' | 'meta'> & {
    data: Sections<Id, Asked, { [Section in SectionOf<Id>]: SectionData<Id, Section, Asked> }>;
    meta: { complete: boolean; sections: Sections<Id, Asked, Record<SectionOf<Id>, SectionMeta<Id>>> };
  }
>;

type SectionMeta<Id extends OverviewId> =
  Json<Id> extends { meta: { sections: infer Metas } } ? NonNullable<Metas[keyof Metas]> : never;

/** A section of an overview as it comes: what it is, or why it failed. */
export type SectionLine<Id extends OverviewId, Asked = object> = {
  [Section in Wanted<Id, Asked>]: LineOf<Section, SectionData<Id, Section, Asked>>;
}[Wanted<Id, Asked>];

/** Only what may be null in an overview may fail here, or not be there. */
type LineOf<Section, Value> =
  | { section: Section; state: 'fresh' | 'stale'; code?: string; data: Value & {} }
  | (null extends Value
      ?
          | { section: Section; state: 'not_applicable'; data: null }
          | { section: Section; state: 'failed' | 'skipped'; error: LineError }
      : never);

/** Codes of problems: the gateway's, three of this package, and any other that the upstream has sent with a 4xx. */
export type Code = ProblemCode | 'connection_failed' | 'unexpected_answer' | 'account_changed' | (string & {});

export interface CallOptions {
  /** Ends the call, and the wait before another try. */
  readonly signal?: AbortSignal | undefined;
  /** Asks for a copy that is made now (`Cache-Control: no-cache`). */
  readonly fresh?: boolean | undefined;
  /** Overviews: any section that fails fails the whole (`Prefer: handling=strict`). */
  readonly strict?: boolean | undefined;
  /** POST: sent again within 24 hours, the same key gets the first answer again. */
  readonly idempotencyKey?: string | undefined;
  /** Parameters that the document does not list, such as filters; as text, the query as it is written. */
  readonly query?: string | Readonly<Record<string, unknown>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The arguments of an operation. Input may be left out where nothing in it is needed. */
export type Takes<Id extends OperationId> =
  object extends Input<Id>
    ? [input?: Input<Id> | undefined, options?: CallOptions | undefined]
    : [input: Input<Id>, options?: CallOptions | undefined];

/** An operation as a method. */
export type Call<Id extends OperationId> = Id extends PlainOverviewId
  ? <const Asked extends Selection<Id> = object>(input?: Asked, options?: CallOptions) => Promise<Answer<Id, Asked>>
  : Id extends OverviewId
    ? <const Asked extends OverviewInput<Id>>(input: Asked, options?: CallOptions) => Promise<Answer<Id, Asked>>
    : (...given: Takes<Id>) => Promise<Answer<Id>>;
