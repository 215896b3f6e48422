import type { LineError, operations as Known, ProblemCode } from './openapi.ts';

/** What `npx portico client` prints declares the operations of its gateway here. They take the place of those known to us. */
export interface Registered {}
type Operations = Registered extends { readonly operations: infer Own } ? Own : Known;

/** The name of a call: its `operationId` in the OpenAPI document. */
export type OperationId = keyof Operations;
/** Method and path of every operation. */
export type Routes = Readonly<Record<OperationId, string>>;

/** Makes types readable where an editor shows them. */
type Shown<T> = { [Key in keyof T]: T[Key] } & {};
type At<T, Key> = Key extends keyof T ? T[Key] : never;
type OrNone<T> = [T] extends [never] ? unknown : T;
type Inputs<Id extends OperationId> = Operations[Id]['parameters'];
type Parameter<Id extends OperationId, In extends 'path' | 'query'> = OrNone<NonNullable<Inputs<Id>[In]>>;
/** Ids may be numbers or texts. */
type PathOf<Id extends OperationId> = { [Key in keyof Parameter<Id, 'path'>]: string | number };
/** `true` will do for `'true'`, and what is undefined is left out. */
type QueryOf<Query> = { [Key in keyof Query]: Query[Key] | ('true' extends Query[Key] ? boolean : never) | undefined };
type Json<Body> = { content: { 'application/json': Body } };
type BodyOf<Id extends OperationId> = Operations[Id] extends { requestBody: Json<infer Body> }
  ? Body
  : Operations[Id] extends { requestBody?: Json<infer Body> }
    ? Partial<Body>
    : never;
/** What an operation is given: the ids of its path, and its query or its body. */
export type Input<Id extends OperationId> = Id extends OverviewId
  ? OverviewInput<Id>
  : Shown<PathOf<Id> & QueryOf<Parameter<Id, 'query'>>> & BodyOf<Id>;

type Response<Id extends OperationId> = Operations[Id]['responses'][keyof Operations[Id]['responses']];
type AnswerOf<Id extends OperationId> = Response<Id> extends Json<infer Body> ? Body : undefined;
/** What an operation answers. An overview has no more than was asked for. */
export type Answer<Id extends OperationId, Asked = object> = Id extends OverviewId
  ? OverviewOf<Id, Asked>
  : AnswerOf<Id>;

type Results = { results: readonly unknown[] };
/** Operations that answer a page of a list. */
export type ListId = { [Id in OperationId]: AnswerOf<Id> extends Results ? Id : never }[OperationId];
/** One entry of such a list. */
export type Item<Id extends ListId> = AnswerOf<Id> extends { results: readonly (infer One)[] } ? One : never;

type Lines = { content: { 'application/x-ndjson': unknown } };
/** Operations that answer several sections at once. */
export type OverviewId = { [Id in OperationId]: Response<Id> extends Lines ? Id : never }[OperationId];
type Data<Id extends OverviewId> = AnswerOf<Id> extends { data: infer All } ? Required<All> : never;
type SectionOf<Id extends OverviewId> = keyof Data<Id> & string;
type FieldOf<Id extends OverviewId, Section extends string> =
  Parameter<Id, 'query'> extends { [Key in `fields[${Section}]`]?: readonly (infer Field)[] } ? Field : never;
type PageOf<Value, Section> = NonNullable<Value> extends Results ? Section : never;

/** Which sections, and which of their fields: all unless named. How many entries of those that are pages. */
interface Selection<Id extends OverviewId> {
  readonly sections?: readonly SectionOf<Id>[] | undefined;
  readonly fields?: { readonly [Section in SectionOf<Id>]?: readonly FieldOf<Id, Section>[] | undefined } | undefined;
  readonly page_size?:
    | { readonly [Section in keyof Data<Id> as PageOf<Data<Id>[Section], Section>]?: number | undefined }
    | undefined;
}
/** What an overview is given: the ids of its path, and what is wanted of it. */
export type OverviewInput<Id extends OverviewId> = Shown<PathOf<Id> & Selection<Id>>;

/** Never, where it may be one thing or another. */
type Single<T, Whole = T> = T extends unknown ? ([Whole] extends [T] ? T : never) : never;
/** What a list surely names: nothing, where only its type is known, or the list may be one or another. */
type Sure<List> =
  Single<List> extends infer One extends readonly unknown[]
    ? number extends One['length']
      ? never
      : { [Index in keyof One]: Single<One[Index]> }[number]
    : never;
/** What a list may name. */
type Maybe<List, Name> = [List] extends [never] ? Name : [List] extends [readonly (infer One)[]] ? One & Name : Name;
/** What is left of a value: all without a list, else what the list surely names, and, as optional, what it may name. */
type Named<Value, List> = [List] extends [never]
  ? Value
  : Shown<Pick<Value, Sure<List> & keyof Value> & Partial<Pick<Value, Maybe<List, keyof Value>>>>;
/** The same of a section: of each entry, where it has several. */
type Trimmed<Value, List> = [List] extends [never]
  ? Value
  : Value extends { results: readonly (infer One)[] }
    ? Shown<Omit<Value, 'results'> & { results: Named<One, List>[] }>
    : Value extends readonly (infer One)[]
      ? Named<One, List>[]
      : Value extends object
        ? Named<Value, List>
        : Value;
type Sections<Id extends OverviewId, Asked> = {
  [Section in SectionOf<Id>]: Trimmed<Data<Id>[Section], At<NonNullable<At<Asked, 'fields'>>, Section>>;
};
type Metas<Id extends OverviewId> =
  AnswerOf<Id> extends { meta: { sections: infer All } } ? Record<SectionOf<Id>, NonNullable<All[keyof All]>> : never;

/** An overview with the sections and fields that were asked for. */
export type OverviewOf<Id extends OverviewId, Asked = object> = Shown<
  Omit<AnswerOf<Id>, 'data' | 'meta'> & {
    data: Named<Sections<Id, Asked>, At<Asked, 'sections'>>;
    meta: { complete: boolean; sections: Named<Metas<Id>, At<Asked, 'sections'>> };
  }
>;

/** A section of an overview as it comes: what it is, or why it failed. */
export type SectionLine<Id extends OverviewId, Asked = object> = {
  [Section in Maybe<At<Asked, 'sections'>, SectionOf<Id>>]: LineOf<Section, Sections<Id, Asked>[Section]>;
}[Maybe<At<Asked, 'sections'>, SectionOf<Id>>];
/** Only what may be null in an overview may fail here, or not be there. */
type LineOf<Section, Value> =
  | { section: Section; state: 'fresh' | 'stale'; code?: string; data: Value & {} }
  | (null extends Value ? NoneOf<Section> : never);
type NoneOf<Section> =
  | { section: Section; state: 'not_applicable'; data: null }
  | { section: Section; state: 'failed' | 'skipped'; error: LineError };

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

/** The arguments of an operation. Its input may be left out where nothing in it is needed. */
export type Takes<Id extends OperationId, Given = Input<Id>> =
  object extends Input<Id>
    ? [input?: Given | undefined, options?: CallOptions | undefined]
    : [input: Given, options?: CallOptions | undefined];
/** An operation as a method. */
export type Call<Id extends OperationId> = Id extends OverviewId
  ? <const Asked extends OverviewInput<Id> = never>(...given: Takes<Id, Asked>) => Promise<Answer<Id, Asked>>
  : (...given: Takes<Id>) => Promise<Answer<Id>>;
