/** Types of constrained.js. `V` is the type of the whole value, as the schema says it. */

export type Pointer = "" | `/${string}`;
export type FinishReason = "stop" | "length" | "cancelled" | "error";
export type TypeName = "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";
export type PathStatus = "next" | "streaming" | "complete";

/** A value while it is written: members and elements may be missing yet, texts may be shorter than they will be. */
export type PartialValue<V> = V extends string | number | boolean | null
  ? V
  : V extends readonly (infer E)[]
    ? PartialValue<E>[]
    : V extends object
      ? { [K in keyof V]?: PartialValue<V[K]> }
      : V;

// -- Requests

export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface Options {
  model?: string;
  max_tokens?: number;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  seed?: number;
  n?: number;
  /** The run outlives its connection, and the client takes it up again by itself. */
  resumable?: boolean;
  whitespace?: "flexible" | "compact" | "indented";
  property_order?: "schema" | "any";
  schema_in_prompt?: boolean;
  coalesce_ms?: number;
}

export type Constraint =
  | { schema: object | boolean; regex?: never; choice?: never; grammar?: never }
  | { regex: string; schema?: never; choice?: never; grammar?: never }
  | { choice: string[]; schema?: never; regex?: never; grammar?: never }
  | { grammar: string; schema?: never; regex?: never; choice?: never };
export type Prompt = { messages: Message[]; prompt?: never } | { prompt: string; messages?: never };
export type Request = Options & Constraint & Prompt;

// -- What comes

export type Op =
  | { op: "field"; path: string; types: TypeName[]; schema_pointer?: string | null; enum?: unknown[] | null }
  | { op: "variant"; path: string; schema_pointer: string }
  | { op: "open"; path: string; type: "object" | "array" | "string" }
  | { op: "text"; path: string; add: string }
  | { op: "set"; path: string; value: unknown; raw?: string | null }
  | { op: "close"; path: string };

export interface Start {
  run: string;
  protocol: number;
  model: string;
  schema: unknown;
  schema_hash: string;
  order: string[];
  choices: number;
}

export interface Delta {
  seq: number;
  choice: number;
  ops: Op[];
}

export interface DocumentState {
  value: unknown;
  open: string[];
  status: Record<string, PathStatus>;
}

export interface Snapshot extends DocumentState {
  seq: number;
  choice: number;
  edited?: string | null;
}

export interface Failure {
  seq: number;
  code: string;
  message: string;
  path: string | null;
  retriable: boolean;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  forced_tokens: number;
  cached_tokens: number;
}

export interface Timings {
  queue_ms: number;
  ttft_ms: number;
  total_ms: number;
  tokens_per_s: number;
}

export interface Done {
  seq: number;
  finish_reason: FinishReason;
  finish_reasons: FinishReason[];
  status: "complete" | "incomplete";
  valid: boolean;
  closed_by_budget: boolean;
  usage: Usage;
  timings: Timings;
}

export interface EventData {
  start: Start;
  delta: Delta;
  snapshot: Snapshot;
  error: Failure;
  done: Done;
}

export type RunEvent = { [K in keyof EventData]: { event: K; id: string; data: EventData[K] } }[keyof EventData];

export type RunState =
  | "connecting"
  | "streaming"
  | "reconnecting"
  | "complete"
  | "incomplete"
  | "failed"
  | "cancelled"
  | "disconnected";

interface At<T> {
  path: string;
  /** What the stars of the subscription's path stand for. */
  keys: string[];
  choice: number;
  /** The value at the path so far. */
  value: T;
  /** Whether it will not change any more, but by an edit. */
  final: boolean;
}

/** What happened at one path. */
export type Change<T = any> =
  | (At<T> & { op: "text"; add: string })
  | (At<T> & { op: "set"; raw?: string | null })
  | (At<T> & { op: "close" })
  | (At<T> & { op: "open"; type: "object" | "array" | "string" })
  | (At<T | undefined> & { op: "field"; types: TypeName[]; schema_pointer?: string | null; enum?: unknown[] | null })
  | (At<T | undefined> & { op: "variant"; schema_pointer: string })
  /** The value as a whole: what was there before the subscription, or what a snapshot brought. */
  | (At<T> & { op: "snapshot" })
  /** A value that was final has been corrected. */
  | (At<T> & { op: "edit" });

export interface Saved {
  run: string | null;
  after: number | null;
  start: Start | null;
  documents: (DocumentState & { seq: number; choice: number })[];
}

export interface Accepted {
  run: string;
  seq: number;
}

// -- Runs

export class Run<V = any> implements AsyncIterable<RunEvent> {
  private constructor();
  readonly client: Constrained;
  readonly request: Request | string | null;
  readonly id: string | null;
  readonly start: Start | null;
  readonly done: Done | null;
  readonly error: ConstrainedError | null;
  readonly state: RunState;
  readonly folds: Fold<V>[];
  readonly value: PartialValue<V> | undefined;
  readonly values: (PartialValue<V> | undefined)[];
  readonly text: string;
  readonly ended: boolean;
  readonly canResume: boolean;
  on<K extends keyof EventData>(event: K, listener: (data: EventData[K]) => void): () => void;
  on(event: "event", listener: (event: RunEvent & { raw: string }) => void): () => void;
  on(event: "state", listener: (state: RunState) => void): () => void;
  on<T = any>(path: Pointer, listener: (change: Change<T>) => void, options?: { choice?: number }): () => void;
  [Symbol.asyncIterator](): AsyncGenerator<RunEvent, void, undefined>;
  final(options?: { choice?: number }): Promise<V>;
  cancel(): Promise<void>;
  edit(path: Pointer, value: unknown, options?: { choice?: number; raw?: string | null }): Promise<Accepted>;
  steer(text: string, options?: { choice?: number | null }): Promise<Accepted>;
  resume(): void;
  save(): Saved;
}

// -- The client

export interface ClientOptions {
  /** Where the service is; in a page that it serves itself, nothing. */
  baseUrl?: string;
  apiKey?: string | null;
  headers?: Record<string, string>;
  fetch?: typeof globalThis.fetch;
  /** `websocket`: events, edits and the rest over one connection. A browser cannot send an API key along with it. */
  transport?: "http" | "websocket";
  WebSocket?: new (url: string) => any;
  /** Silence that counts as a lost connection; the service breaks each after ten seconds. 0 waits for ever. */
  timeoutMs?: number;
  /** Attempts in a row to take up a resumable run. */
  maxReconnects?: number;
  warn?: (message: string) => void;
}

export interface Choice<V> {
  index: number;
  text: string;
  value: V | null;
  finish_reason: FinishReason;
  valid: boolean;
}

export interface Answer<V> {
  run: string;
  model: string;
  schema_hash: string;
  choices: Choice<V>[];
  usage: Usage;
  timings: Timings;
}

export interface KeywordReport {
  pointer: string;
  keyword: string;
  status: "enforced" | "annotation" | "refused";
  reason: string | null;
}

export interface SchemaReport {
  supported: boolean;
  schema_hash: string | null;
  keywords: KeywordReport[];
  order: string[];
  min_bytes: number | null;
  error: { message: string; type: string; param: string | null; code: string | null } | null;
}

export interface Model {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
  context_len: number;
}

export class Constrained {
  constructor(options?: ClientOptions);
  readonly baseUrl: string;
  readonly transport: "http" | "websocket";
  stream<V = any>(request: Request | string, options?: { signal?: AbortSignal }): Run<V>;
  join<V = any>(
    run: string,
    saved?: { after?: number | null; start?: Start | null; documents?: Saved["documents"]; signal?: AbortSignal },
  ): Run<V>;
  complete<V = any>(request: Request | string, options?: { signal?: AbortSignal }): Promise<Answer<V>>;
  check(schema: unknown, options?: Pick<Options, "whitespace" | "property_order">): Promise<SchemaReport>;
  models(): Promise<Model[]>;
}

// -- Parts

export interface FoldNode {
  readonly path: string;
  readonly kind: "object" | "array" | "string" | "scalar";
  readonly value: unknown;
  readonly open: boolean;
  readonly raw: string | null;
  readonly children: ReadonlyMap<string, FoldNode>;
}

export class Fold<V = any> {
  readonly nodes: ReadonlyMap<string, FoldNode>;
  readonly status: ReadonlyMap<string, PathStatus>;
  readonly variants: ReadonlyMap<string, string>;
  readonly value: PartialValue<V> | undefined;
  readonly text: string;
  readonly openPaths: string[];
  apply(op: Op): void;
  restore(state: DocumentState): void;
  snapshot(): DocumentState;
  edit(path: string, value: unknown, raw?: string | null): void;
}

export class EventDecoder {
  feed(bytes: Uint8Array): { event: string; id: string; data: string }[];
}

export function splitPointer(pointer: string): string[];
export function joinPointer(pointer: string, token: string | number): string;
export function parentPointer(pointer: string): string;
export function lastToken(pointer: string): string;

// -- Errors

export class ConstrainedError extends Error {
  readonly code: string;
  readonly path: string | null;
  readonly retriable: boolean;
}

export class ApiError extends ConstrainedError {
  readonly status: number | null;
  readonly requestId: string | null;
  readonly retryAfterMs: number | null;
}

export class RunError extends ConstrainedError {}

export class IncompleteError<V = any> extends ConstrainedError {
  readonly finishReason: FinishReason;
  readonly value: PartialValue<V> | undefined;
}

export class CancelledError<V = any> extends IncompleteError<V> {}
export class ConnectionLostError extends ConstrainedError {}
export class ProtocolError extends ConstrainedError {}
