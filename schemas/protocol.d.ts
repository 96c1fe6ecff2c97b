// Typed deltas, protocol version 1. Written by `python -m schemas.export`; do not edit.

/**
 * Stop a run.
 */
export interface CancelMessage {
  op: "cancel";
  id?: string | null;
  run?: string | null;
}

/**
 * Answer of `POST /v1/structured/{run}/cancel`: "cancelled" where the run was still going, else "finished".
 */
export interface CancelResponse {
  run: string;
  status: "cancelled" | "finished";
}

/**
 * Body of `POST /v1/schemas/check`.
 */
export interface CheckRequest {
  whitespace?: "flexible" | "compact" | "indented";
  max_whitespace?: number | null;
  property_order?: "schema" | "any";
  spelling?: "default" | "permissive";
  formats?: "assert" | "annotate";
  custom_formats?: Record<string, string>;
  unknown_formats?: "annotate" | "refuse";
  nullable?: boolean;
  schema: unknown;
}

/**
 * Whether a schema compiles, per keyword, with the generation order of its properties.
 */
export interface CheckResponse {
  supported: boolean;
  schema_hash?: string | null;
  keywords: KeywordReport[];
  order: string[];
  min_bytes?: number | null;
  error?: ErrorInfo | null;
}

/**
 * The opened value at `path` is final.
 */
export interface CloseOp {
  op: "close";
  path: string;
}

/**
 * Ops of one choice; `seq` numbers the last op of the frame.
 */
export interface DeltaEvent {
  seq: number;
  choice?: number;
  ops: Op[];
}

/**
 * `delta`.
 */
export interface DeltaLine {
  event: "delta";
  id: string;
  data: DeltaEvent;
}

/**
 * Terminal: the run ended. `valid` is the verdict of a JSON Schema validator on the finished document.
 */
export interface DoneEvent {
  seq: number;
  finish_reason: "stop" | "length" | "cancelled" | "error";
  finish_reasons: ("stop" | "length" | "cancelled" | "error")[];
  status: "complete" | "incomplete";
  valid: boolean;
  closed_by_budget?: boolean;
  usage: UsageInfo;
  timings: Timings;
}

/**
 * `done`.
 */
export interface DoneLine {
  event: "done";
  id: string;
  data: DoneEvent;
}

/**
 * Correct a closed value of a run.
 */
export interface EditMessage {
  path: string;
  value: unknown;
  choice?: number;
  op: "edit";
  id?: string | null;
  run?: string | null;
}

/**
 * Body of `POST /v1/structured/{run}/edit`: the closed value at `path` becomes `value`, which its subschema must allow.
 */
export interface EditRequest {
  path: string;
  value: unknown;
  choice?: number;
}

/**
 * The body of every answer that is not 2xx.
 */
export interface ErrorBody {
  error: ErrorInfo;
}

/**
 * Terminal: the run failed. `path` names the open location, if any.
 */
export interface ErrorEvent {
  seq: number;
  code: string;
  message: string;
  path?: string | null;
  retriable?: boolean;
}

/**
 * `param` is the JSON Pointer or the field at fault; `code` is stable.
 */
export interface ErrorInfo {
  message: string;
  type: string;
  param?: string | null;
  code?: string | null;
}

/**
 * `error`.
 */
export interface ErrorLine {
  event: "error";
  id: string;
  data: ErrorEvent;
}

/**
 * Type-ahead: this location is next; its value has not begun.
 */
export interface FieldOp {
  op: "field";
  path: string;
  types: ("null" | "boolean" | "integer" | "number" | "string" | "array" | "object")[];
  schema_pointer?: string | null;
  enum?: unknown[] | null;
}

/**
 * Join or resume a run; `after` is the number of the last event that the client has.
 */
export interface JoinMessage {
  op: "join";
  id?: string | null;
  run: string;
  after?: number | null;
}

/**
 * What becomes of one keyword of a schema; `pointer` leads to it.
 */
export interface KeywordReport {
  pointer: string;
  keyword: string;
  status: "enforced" | "annotation" | "refused";
  reason?: string | null;
}

/**
 * One chat message.
 */
export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

/**
 * A container or a string begins.
 */
export interface OpenOp {
  op: "open";
  path: string;
  type: "object" | "array" | "string";
}

/**
 * What became of one message: `error` says why it was refused, and the connection and its runs go on.
 *
 * `reply` and `id` are None where the message could not be read so far. `status` answers a cancel, `seq` a steer or an edit.
 */
export interface Reply {
  reply: "start" | "join" | "cancel" | "steer" | "edit" | null;
  id?: string | null;
  run?: string | null;
  seq?: number | null;
  status?: "cancelled" | "finished" | null;
  error?: ErrorInfo | null;
}

/**
 * A scalar, whole and final; `raw` is the lexeme where a double would lose it. No `close` follows a `set`.
 */
export interface SetOp {
  op: "set";
  path: string;
  value: unknown;
  raw?: string | null;
}

/**
 * The fold of every op up to `seq`: sent where a reader joins late or fell behind, and after an edit.
 *
 * `edited` is then the path that was corrected: the one way in which a closed value ever changes.
 */
export interface SnapshotEvent {
  seq: number;
  choice?: number;
  value: unknown;
  open: string[];
  status: Record<string, "next" | "streaming" | "complete">;
  edited?: string | null;
}

/**
 * `snapshot`.
 */
export interface SnapshotLine {
  event: "snapshot";
  id: string;
  data: SnapshotEvent;
}

/**
 * First event of every stream.
 */
export interface StartEvent {
  run: string;
  protocol?: number;
  model: string;
  schema: unknown;
  schema_hash: string;
  order: string[];
  choices?: number;
}

/**
 * `start`.
 */
export interface StartLine {
  event: "start";
  id: string;
  data: StartEvent;
}

/**
 * Start a run; its events follow the reply.
 */
export interface StartMessage {
  op: "start";
  id?: string | null;
  request: StructuredRequest;
}

/**
 * Say something more to a run.
 */
export interface SteerMessage {
  text: string;
  choice?: number | null;
  op: "steer";
  id?: string | null;
  run?: string | null;
}

/**
 * Body of `POST /v1/structured/{run}/steer`: `text` joins the conversation as a user turn.
 *
 * It reaches every choice that goes on, or `choice` alone.
 */
export interface SteerRequest {
  text: string;
  choice?: number | null;
}

/**
 * Answer to both: `seq` is the last operation before the new course; after an edit, the edit itself.
 */
export interface SteerResponse {
  run: string;
  seq: number;
}

/**
 * One finished document: its text as generated and its value (None where the text is cut).
 */
export interface StructuredChoice {
  index: number;
  text: string;
  value?: unknown;
  finish_reason: "stop" | "length" | "cancelled" | "error";
  valid: boolean;
}

/**
 * Body of `POST /v1/structured` and `/v1/structured/stream`.
 *
 * Exactly one of `schema` (a JSON Schema, or a boolean), `regex`, `choice`, `grammar`; exactly one of `messages`, `prompt`.
 */
export interface StructuredRequest {
  whitespace?: "flexible" | "compact" | "indented";
  max_whitespace?: number | null;
  property_order?: "schema" | "any";
  spelling?: "default" | "permissive";
  formats?: "assert" | "annotate";
  custom_formats?: Record<string, string>;
  unknown_formats?: "annotate" | "refuse";
  nullable?: boolean;
  schema?: Record<string, unknown> | boolean | null;
  regex?: string | null;
  choice?: string[] | null;
  grammar?: string | null;
  messages?: Message[] | null;
  prompt?: string | null;
  model?: string | null;
  max_tokens?: number;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  seed?: number | null;
  n?: number;
  resumable?: boolean;
  schema_in_prompt?: boolean;
  coalesce_ms?: number;
}

/**
 * Answer of `POST /v1/structured`.
 */
export interface StructuredResponse {
  run: string;
  model: string;
  schema_hash: string;
  choices: StructuredChoice[];
  usage: UsageInfo;
  timings: Timings;
}

/**
 * Decoded text to append to the open string at `path`; whole Unicode scalar values.
 */
export interface TextOp {
  op: "text";
  path: string;
  add: string;
}

export interface Timings {
  queue_ms: number;
  ttft_ms: number;
  total_ms: number;
  tokens_per_s: number;
}

export interface UsageInfo {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  forced_tokens?: number;
  cached_tokens?: number;
}

/**
 * A union at `path` is decided: `schema_pointer` is the arm that holds.
 */
export interface VariantOp {
  op: "variant";
  path: string;
  schema_pointer: string;
}

/**
 * One operation inside a delta.
 */
export type Op = FieldOp | VariantOp | OpenOp | TextOp | SetOp | CloseOp;

/**
 * The data of an event; its name is the event's in SSE, and `event` in a line.
 */
export type Event = StartEvent | DeltaEvent | SnapshotEvent | ErrorEvent | DoneEvent;

/**
 * One event as a line of JSON Lines, and as a message of the WebSocket.
 */
export type Line = StartLine | DeltaLine | SnapshotLine | ErrorLine | DoneLine;

/**
 * What a client sends over the WebSocket.
 */
export type ClientMessage = StartMessage | JoinMessage | CancelMessage | SteerMessage | EditMessage;

/**
 * What the service sends over the WebSocket.
 */
export type ServerMessage = StartLine | DeltaLine | SnapshotLine | ErrorLine | DoneLine | Reply;
