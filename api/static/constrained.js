/**
 * Client of the typed delta protocol: start, follow, resume, edit and steer runs that write JSON bound by a schema.
 *
 * One file without dependencies, for browsers, workers and Node 20. From the bottom up: JSON Pointers, errors,
 * `EventDecoder` (bytes to events), `Fold` (ops to a value), two transports, `Run`, `Constrained`. See docs/javascript.md.
 */

const DEFAULT_TIMEOUT_MS = 30_000; // the service breaks each silence after ten seconds
const DEFAULT_MAX_RECONNECTS = 8;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;
const MAX_BACKLOG = 1024; // events that wait for one slow loop before a snapshot stands for them
const BUFFERED_SHARE = 0.25;
const BUFFERED_MIN_MS = 500;
const RETRIABLE_STATUS = new Set([408, 429, 500, 502, 503, 504]);

// -- JSON Pointers (RFC 6901)

/** @param {string} pointer @returns {string[]} the unescaped reference tokens */
export function splitPointer(pointer) {
  return pointer === "" ? [] : pointer.slice(1).split("/").map(unescapeToken);
}

/** @param {string} pointer @param {string | number} token @returns {string} the pointer one level down */
export function joinPointer(pointer, token) {
  return `${pointer}/${String(token).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** @param {string} pointer any but the root's @returns {string} the pointer one level up */
export function parentPointer(pointer) {
  return pointer.slice(0, pointer.lastIndexOf("/"));
}

/** @param {string} pointer any but the root's @returns {string} */
export function lastToken(pointer) {
  return unescapeToken(pointer.slice(pointer.lastIndexOf("/") + 1));
}

/** @param {string} token */
function unescapeToken(token) {
  return token.replaceAll("~1", "/").replaceAll("~0", "~");
}

// -- Errors
//
//   ConstrainedError         code, path, retriable
//   ├── ApiError             the service refused the call: status, requestId
//   ├── RunError             the run failed, and told why
//   ├── IncompleteError      the run ended before its document: finishReason, value
//   │   └── CancelledError
//   ├── ConnectionLostError  the connection broke, or never came about
//   └── ProtocolError        the other side does not speak this protocol

/** @typedef {{code: string, path?: string | null, retriable?: boolean, cause?: unknown}} ErrorFields */

export class ConstrainedError extends Error {
  /** @param {string} message @param {ErrorFields} fields */
  constructor(message, { code, path = null, retriable = false, cause }) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.path = path;
    this.retriable = retriable;
  }
}

export class ApiError extends ConstrainedError {
  /**
   * @param {number | null} status null where a WebSocket's reply refused
   * @param {{message?: string, param?: string | null, code?: string | null}} info the error body's inside
   * @param {{retriable?: boolean, requestId?: string | null, retryAfterMs?: number | null}} [head]
   */
  constructor(status, info, { retriable = false, requestId = null, retryAfterMs = null } = {}) {
    const message = info.message ?? `The service answered with status ${status}.`;
    super(message, { code: info.code ?? "http_error", path: info.param ?? null, retriable });
    this.status = status;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }

  /** @param {Response} response one that is not 2xx */
  static async from(response) {
    const { headers, status } = response;
    // A proxy may answer in HTML; the status is then all there is to tell.
    const body = await response.json().catch(() => null);
    const after = Number(headers.get("retry-after") ?? NaN);
    return new ApiError(status, body?.error ?? {}, {
      retriable: RETRIABLE_STATUS.has(status) && headers.get("x-should-retry") !== "false",
      requestId: headers.get("x-request-id"),
      retryAfterMs: Number.isFinite(after) ? after * 1000 : null,
    });
  }
}

export class RunError extends ConstrainedError {}

export class IncompleteError extends ConstrainedError {
  /** @param {string} message @param {string} finishReason @param {unknown} value what there is of the document */
  constructor(message, finishReason, value) {
    super(message, { code: finishReason });
    this.finishReason = finishReason;
    this.value = value;
  }
}

export class CancelledError extends IncompleteError {
  /** @param {unknown} value */
  constructor(value) {
    super("The run was cancelled.", "cancelled", value);
  }
}

export class ConnectionLostError extends ConstrainedError {
  /** @param {string} message @param {unknown} [cause] */
  constructor(message, cause) {
    super(message, { code: "connection_lost", retriable: true, cause });
  }
}

export class ProtocolError extends ConstrainedError {
  /** @param {string} message */
  constructor(message) {
    super(message, { code: "protocol_error" });
  }
}

// -- Server-sent events (WHATWG HTML, 9.2.6 "Interpreting an event stream")

const LINE_END = /\r\n|\r|\n/g;

/** Events out of bytes, however they are cut. */
export class EventDecoder {
  #utf8 = new TextDecoder();
  #line = "";
  #afterCr = false;
  #event = "";
  /** @type {string[]} */
  #data = [];
  #id = "";

  /** @param {Uint8Array} bytes @returns {{event: string, id: string, data: string}[]} the events that they complete */
  feed(bytes) {
    let text = this.#utf8.decode(bytes, { stream: true });
    if (text === "") return [];
    // A CR already ended its line; an LF that arrives in a later chunk belongs to it.
    if (this.#afterCr && text.startsWith("\n")) text = text.slice(1);
    this.#afterCr = text === "" ? false : text.endsWith("\r");
    const events = [];
    let start = 0;
    for (const end of text.matchAll(LINE_END)) {
      const event = this.#take(this.#line + text.slice(start, end.index));
      if (event) events.push(event);
      this.#line = "";
      start = end.index + end[0].length;
    }
    this.#line += text.slice(start);
    return events;
  }

  /** @param {string} line a whole line */
  #take(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#event = value;
    else if (name === "data") this.#data.push(value);
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    return null;
  }

  #dispatch() {
    const event = { event: this.#event || "message", id: this.#id, data: this.#data.join("\n") };
    const empty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    return empty ? null : event;
  }
}

// -- The fold

const EMPTY = { object: () => ({}), array: () => [], string: () => "" };

/** One value of a document: where it is, what it is so far, whether it is still open. */
class Node {
  /**
   * @param {string} path
   * @param {"object" | "array" | "string" | "scalar"} kind
   * @param {unknown} value plain data; of a container the live one, which grows
   * @param {boolean} open
   * @param {string | null} raw the lexeme of a number that a double would lose
   */
  constructor(path, kind, value, open, raw = null) {
    this.path = path;
    this.kind = kind;
    this.value = value;
    this.open = open;
    this.raw = raw;
    /** @type {Node | null} */
    this.above = null;
    /** @type {Map<string, Node>} members or elements, in the order of the document */
    this.children = new Map();
  }

  /** @param {unknown} value */
  replace(value) {
    this.value = value;
    if (this.above) put(this.above.value, lastToken(this.path), value);
  }
}

/**
 * Ops in, the value so far out, at constant cost per op; `ProtocolError` where they break the protocol.
 *
 * A document is written depth first, so the open values form one chain from the root, and an op is legal only at its end:
 * a container takes its next member or element, a string takes text, and only the innermost value closes.
 */
export class Fold {
  /** @type {Map<string, Node>} every value begun, by path, in document order */
  nodes = new Map();
  /** @type {Map<string, "next" | "streaming" | "complete">} */
  status = new Map();
  /** @type {Map<string, string>} the schema pointer of each union that is decided, by path */
  variants = new Map();
  /** @type {Node[]} */
  #chain = [];

  /** The value so far; undefined before it begins. It is live: it grows with the run. */
  get value() {
    return this.nodes.get("")?.value;
  }

  /** The value so far as indented JSON, numbers as they were written; what is open is left unclosed. */
  get text() {
    const root = this.nodes.get("");
    return root ? print(root, "\n") : "";
  }

  /** @returns {string[]} the paths that are open, outermost first */
  get openPaths() {
    return this.#chain.map((node) => node.path);
  }

  /** @param {any} op */
  apply(op) {
    const step = Object.hasOwn(STEPS, op.op) ? STEPS[/** @type {keyof typeof STEPS} */ (op.op)] : undefined;
    if (!step) throw new ProtocolError(`${JSON.stringify(op.op)} is no operation`);
    step(this, op);
  }

  /** Start again from the data of a snapshot. @param {{value: unknown, open: string[], status: Record<string, any>}} snapshot */
  restore({ value, open, status }) {
    this.nodes.clear();
    this.#chain = [];
    this.status = new Map(Object.entries(status));
    if (!this.status.has("") || this.status.get("") === "next") return;
    const opened = new Set(open);
    walk(structuredClone(value), "", (path, kind, below) => this.#attach(new Node(path, kind, below, opened.has(path))));
    for (const [path, node] of this.nodes) this.status.set(path, node.open ? "streaming" : "complete");
  }

  /** @returns {{value: unknown, open: string[], status: Record<string, any>}} a copy that `restore` takes */
  snapshot() {
    return { value: structuredClone(this.value ?? null), open: this.openPaths, status: Object.fromEntries(this.status) };
  }

  /** Replace a string or scalar that is final. @param {string} path @param {unknown} value @param {string | null} [raw] */
  edit(path, value, raw = null) {
    const node = this.nodes.get(path);
    if (!node || node.open || node.children.size) throw new ProtocolError(`Nothing at ${path} can be edited`);
    node.kind = typeof value === "string" ? "string" : "scalar";
    node.raw = raw;
    node.replace(value);
  }

  /** @param {string} path @param {Node["kind"]} kind @param {unknown} value @param {boolean} open @param {string | null} [raw] */
  begin(path, kind, value, open, raw = null) {
    if (this.nodes.has(path)) throw new ProtocolError(`${path} begins twice`);
    const top = this.#chain.at(-1);
    if (path === "" ? top : top?.path !== parentPointer(path)) throw new ProtocolError(`${path} begins outside of its parent`);
    this.#attach(new Node(path, kind, value, open, raw));
    this.status.set(path, open ? "streaming" : "complete");
  }

  /** @param {string} path @returns {Node} the innermost open value, which must be at `path` */
  innermost(path) {
    const top = this.#chain.at(-1);
    if (top?.path !== path) throw new ProtocolError(`${path} is not the innermost open value`);
    return top;
  }

  /** @param {string} path */
  close(path) {
    this.innermost(path).open = false;
    this.#chain.pop();
    this.status.set(path, "complete");
  }

  /** @param {Node} node */
  #attach(node) {
    if (node.path !== "") {
      const above = /** @type {Node} */ (this.nodes.get(parentPointer(node.path)));
      const token = lastToken(node.path);
      const fits = above.kind === "object" || (above.kind === "array" && token === String(above.children.size));
      if (!fits) throw new ProtocolError(`${node.path} has no place in its parent`);
      node.above = above;
      above.children.set(token, node);
      put(above.value, token, node.value);
    }
    this.nodes.set(node.path, node);
    if (node.open) this.#chain.push(node);
  }
}

const STEPS = {
  /** @param {Fold} fold @param {any} op */
  field: (fold, { path }) => void fold.status.set(path, "next"),
  /** @param {Fold} fold @param {any} op */
  variant: (fold, { path, schema_pointer }) => void fold.variants.set(path, schema_pointer),
  /** @param {Fold} fold @param {any} op */
  open(fold, { path, type }) {
    if (!Object.hasOwn(EMPTY, type)) throw new ProtocolError(`A value of type ${JSON.stringify(type)} cannot be opened`);
    fold.begin(path, type, EMPTY[/** @type {keyof typeof EMPTY} */ (type)](), true);
  },
  /** @param {Fold} fold @param {any} op */
  text(fold, { path, add }) {
    const node = fold.innermost(path);
    if (node.kind !== "string") throw new ProtocolError(`${path} takes no text: it is an ${node.kind}`);
    node.replace(node.value + add);
  },
  /** @param {Fold} fold @param {any} op */
  set: (fold, { path, value, raw }) => fold.begin(path, typeof value === "string" ? "string" : "scalar", value, false, raw),
  /** @param {Fold} fold @param {any} op */
  close: (fold, { path }) => fold.close(path),
};

/** @param {any} container @param {string} token @param {unknown} value */
function put(container, token, value) {
  // As JSON.parse does it: an own member, also where the name is one of Object.prototype's setters.
  if (token === "__proto__") Object.defineProperty(container, token, { value, enumerable: true, configurable: true, writable: true });
  else container[token] = value;
}

/** @param {any} value @param {string} path @param {(path: string, kind: Node["kind"], value: unknown) => void} visit parents first */
function walk(value, path, visit) {
  if (value === null || typeof value !== "object") return visit(path, typeof value === "string" ? "string" : "scalar", value);
  visit(path, Array.isArray(value) ? "array" : "object", value);
  for (const [key, below] of Object.entries(value)) walk(below, joinPointer(path, key), visit);
}

/** @param {Node} node @param {string} margin a newline and the indent of the line that the node stands on @returns {string} */
function print(node, margin) {
  if (node.kind === "scalar") return node.raw ?? JSON.stringify(node.value);
  if (node.kind === "string") return JSON.stringify(node.value).slice(0, node.open ? -1 : undefined);
  const inner = `${margin}  `;
  const name = (/** @type {string} */ key) => (node.kind === "object" ? `${JSON.stringify(key)}: ` : "");
  const lines = [...node.children].map(([key, below]) => `${inner}${name(key)}${print(below, inner)}`);
  const [left, right] = node.kind === "array" ? "[]" : "{}";
  return left + lines.join(",") + (node.open ? "" : (lines.length ? margin : "") + right);
}

// -- Transports: each gives the frames of a run as {event, id, data}, data as text

/** @typedef {{event: string, id: string, data: string}} Frame */

/** Server-sent events over fetch; what is said to a run is a POST of its own. */
class HttpTransport {
  /** @param {Constrained} client */
  constructor(client) {
    this.client = client;
  }

  /** @param {string} body @param {AbortSignal} signal @returns {AsyncGenerator<Frame>} */
  start(body, signal) {
    return this.#frames("v1/structured/stream", { method: "POST", body }, signal);
  }

  /** @param {string} run @param {number | null} after @param {AbortSignal} signal @returns {AsyncGenerator<Frame>} */
  join(run, after, signal) {
    const place = after === null ? "" : `?after=${after}`;
    return this.#frames(`v1/structured/${encodeURIComponent(run)}/events${place}`, { method: "GET" }, signal);
  }

  /** @param {string} run @param {string} op @param {string} fields the members of the body as JSON text */
  command(run, op, fields) {
    return this.client.call(`v1/structured/${encodeURIComponent(run)}/${op}`, { method: "POST", body: `{${fields}}` });
  }

  /** @param {string} path @param {RequestInit} init @param {AbortSignal} signal @returns {AsyncGenerator<Frame>} */
  async *#frames(path, init, signal) {
    const cut = new AbortController();
    const abort = () => cut.abort(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    const silence = new Alarm(this.client.timeoutMs, () => cut.abort());
    try {
      if (signal.aborted) abort();
      const response = await this.client.request(path, { ...init, signal: cut.signal }, "text/event-stream");
      const type = response.headers.get("content-type") ?? "nothing";
      if (!response.body || !type.startsWith("text/event-stream")) throw new ProtocolError(`The answer is ${type}, and no event stream`);
      yield* decoded(response.body.getReader(), () => silence.restart());
    } catch (error) {
      if (error instanceof ConstrainedError) throw error;
      throw new ConnectionLostError(silence.rang ? "Nothing was heard of the service for too long" : "The connection broke", error);
    } finally {
      silence.stop();
      signal.removeEventListener("abort", abort);
      cut.abort();
    }
  }
}

/** @param {ReadableStreamDefaultReader<Uint8Array>} reader @param {() => void} heard @returns {AsyncGenerator<Frame>} */
async function* decoded(reader, heard) {
  const decoder = new EventDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    yield* decoder.feed(value);
  }
}

/** Everything over one WebSocket. A browser cannot send an API key along with it. */
class SocketTransport {
  /** @type {WebSocket | null} */
  #socket = null;
  #commands = 0;
  /** @type {Map<string, {resolve: (reply: any) => void, reject: (error: Error) => void}>} */
  #waiting = new Map();

  /** @param {Constrained} client */
  constructor(client) {
    this.client = client;
  }

  /** @param {string} body @param {AbortSignal} signal @returns {AsyncGenerator<Frame>} */
  start(body, signal) {
    return this.#frames(`{"op":"start","request":${body}}`, signal);
  }

  /** @param {string} run @param {number | null} after @param {AbortSignal} signal @returns {AsyncGenerator<Frame>} */
  join(run, after, signal) {
    return this.#frames(JSON.stringify({ op: "join", run, after }), signal);
  }

  /** @param {string} run @param {string} op @param {string} fields @returns {Promise<any>} */
  command(run, op, fields) {
    const socket = this.#socket;
    // Between two connections there is still the other way.
    if (socket?.readyState !== 1) return new HttpTransport(this.client).command(run, op, fields);
    const id = String(++this.#commands);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      socket.send(`{"op":"${op}","id":"${id}","run":${JSON.stringify(run)}${fields && `,${fields}`}}`);
    });
  }

  /** @param {string} opening the first message @param {AbortSignal} signal @returns {AsyncGenerator<Frame>} */
  async *#frames(opening, signal) {
    /** @type {Channel<Frame>} */
    const frames = new Channel();
    const socket = new this.client.WebSocket(this.client.socketUrl());
    this.#socket = socket;
    const lose = (/** @type {string} */ why) => frames.end(new ConnectionLostError(why));
    const silence = new Alarm(this.client.timeoutMs, () => lose("The WebSocket did not open"));
    const abort = () => lose("The run was left");
    signal.addEventListener("abort", abort, { once: true });
    socket.onopen = () => {
      silence.stop(); // from here on the two ends ping each other
      socket.send(opening);
    };
    socket.onmessage = (/** @type {MessageEvent} */ { data }) => this.#take(JSON.parse(data), frames);
    socket.onerror = () => lose("The WebSocket broke");
    socket.onclose = (/** @type {CloseEvent} */ { reason }) => lose(reason || "The WebSocket closed");
    try {
      if (signal.aborted) abort();
      yield* frames;
    } finally {
      silence.stop();
      signal.removeEventListener("abort", abort);
      socket.onclose = socket.onerror = socket.onmessage = socket.onopen = null;
      socket.close();
      for (const { reject } of this.#waiting.values()) reject(new ConnectionLostError("The WebSocket closed before its reply"));
      this.#waiting.clear();
    }
  }

  /** @param {any} message @param {Channel<Frame>} frames */
  #take(message, frames) {
    if (!("reply" in message)) return frames.push({ ...message, data: JSON.stringify(message.data) });
    const { id, error } = message;
    const refusal = error && new ApiError(null, error, { retriable: error.type === "overloaded_error" });
    const asked = this.#waiting.get(id);
    if (asked) {
      this.#waiting.delete(id);
      if (refusal) asked.reject(refusal);
      else asked.resolve(message);
    } else if (refusal) frames.end(refusal);
  }
}

/** Rings once where it is not restarted in time; 0 ms is never. */
class Alarm {
  rang = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {number} ms @param {() => void} ring */
  constructor(ms, ring) {
    this.ms = ms;
    this.ring = ring;
    this.restart();
  }

  restart() {
    this.stop();
    if (this.ms === 0) return;
    this.#timer = setTimeout(() => {
      this.rang = true;
      this.ring();
    }, this.ms);
  }

  stop() {
    clearTimeout(this.#timer);
  }
}

/** A queue with one reader: `for await` takes what is pushed, until the end, or the error, that it was given. @template T */
class Channel {
  /** @type {T[]} */
  items = [];
  #ended = false;
  /** @type {Error | null} */
  #error = null;
  #wake = () => {};

  /** @param {T} item */
  push(item) {
    this.items.push(item);
    this.#wake();
  }

  /** @param {Error | null} [error] */
  end(error = null) {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.items.length) yield /** @type {T} */ (this.items.shift());
      if (this.#error) throw this.#error;
      if (this.#ended) return;
      await new Promise((/** @type {(value?: unknown) => void} */ resolve) => (this.#wake = resolve));
    }
  }
}

// -- Runs

const EVENTS = new Set(["start", "delta", "snapshot", "error", "done", "event", "state"]);
const OPEN_STATES = new Set(["connecting", "streaming", "reconnecting"]);

/** One run while it is written. It reads on by itself, whoever listens. */
export class Run {
  /** @type {Map<string, (run: Run, data: any) => any[]>} each gives the changes of the document that an event brings */
  static #handlers = new Map([
    ["start", (run, data) => run.#takeStart(data)],
    ["delta", (run, data) => run.#takeDelta(data)],
    ["snapshot", (run, data) => run.#takeSnapshot(data)],
    ["error", () => []],
    ["done", (run, data) => run.#takeDone(data)],
  ]);
  /** @type {string | null} */
  id = null;
  /** @type {any} the start event's data */
  start = null;
  /** @type {any} the done event's data */
  done = null;
  /** @type {ConstrainedError | null} why there is no whole document */
  error = null;
  state = "connecting";
  /** @type {Fold[]} one for each choice */
  folds = [new Fold()];
  #transport;
  #resumable;
  #cancelled = false;
  #place = /** @type {number | null} */ (null);
  #seqs = [0];
  #connection = new AbortController();
  /** @type {Set<{match: (tokens: string[]) => string[] | null, listener: (change: any) => void, choice: number}>} */
  #subscriptions = new Set();
  /** @type {Map<string, Set<(data: any) => void>>} */
  #listeners = new Map();
  /** @type {Set<Channel<any>>} */
  #channels = new Set();
  #began = performance.now();
  #firstDelta = /** @type {number | null} */ (null);
  #unbroken = true;
  #forgetSignal = () => {};
  #last = /** @type {any} */ (null);

  /**
   * @param {Constrained} client
   * @param {{request?: Record<string, any> | string | null, id?: string | null, saved?: any, signal?: AbortSignal}} what
   */
  constructor(client, { request = null, id = null, saved = null, signal }) {
    this.client = client;
    /** @type {Record<string, any> | string | null} what was asked for, where it was asked for here */
    this.request = request;
    this.id = id;
    this.#transport = client.transport === "websocket" ? new SocketTransport(client) : new HttpTransport(client);
    const body = typeof request === "string" ? request : JSON.stringify(request);
    this.#resumable = request === null || JSON.parse(body).resumable === true;
    if (saved?.documents) this.#load(saved);
    if (signal?.aborted) this.#cancelled = true;
    const abort = () => void this.cancel().catch(() => {});
    signal?.addEventListener("abort", abort, { once: true });
    this.#forgetSignal = () => signal?.removeEventListener("abort", abort);
    // Nothing is told before whoever makes the run has had the time to listen.
    queueMicrotask(() => void (request === null ? this.#follow() : this.#follow(body)));
  }

  /** The first choice's value so far; undefined before it begins. It is live: `structuredClone` keeps a moment of it. */
  get value() {
    return this.folds[0].value;
  }

  /** @returns {unknown[]} the values so far of all choices */
  get values() {
    return this.folds.map((fold) => fold.value);
  }

  /** The first choice's value so far as JSON text. */
  get text() {
    return this.folds[0].text;
  }

  /** Whether the run has come to an end, or the connection to it. */
  get ended() {
    return !OPEN_STATES.has(this.state);
  }

  /** Whether only the connection was lost, and `resume` takes it up again. */
  get canResume() {
    return this.state === "disconnected" && this.#resumable && this.id !== null;
  }

  /**
   * Listen to a part of the document, or to events. A path is a JSON Pointer; in it `*` stands for any one token and `/**` at
   * its end for everything there and below. What has arrived before is told at once, as one `snapshot` for each value.
   *
   * @param {string} what
   * @param {(told: any) => void} listener
   * @param {{choice?: number}} [options]
   * @returns {() => void} stops it
   */
  on(what, listener, { choice = 0 } = {}) {
    if (what === "" || what.startsWith("/")) return this.#subscribe(what, listener, choice);
    if (!EVENTS.has(what)) throw new TypeError(`on() takes a JSON Pointer or one of ${[...EVENTS].join(", ")}, not "${what}"`);
    const listeners = this.#listeners.get(what) ?? new Set();
    this.#listeners.set(what, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  /** Every event to the end; a loop that comes late begins with the start and one snapshot of each choice. */
  async *[Symbol.asyncIterator]() {
    /** @type {Channel<any>} */
    const channel = new Channel();
    channel.items = this.#soFar();
    if (this.ended) channel.end(this.#loopError());
    else this.#channels.add(channel);
    try {
      yield* channel;
    } finally {
      this.#channels.delete(channel); // a loop may be left before its end
    }
  }

  /** The whole value, once it is there; rejects with why it never will be. @param {{choice?: number}} [options] @returns {Promise<any>} */
  async final({ choice = 0 } = {}) {
    if (!this.ended) {
      await new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
        const stop = this.on("state", () => {
          if (!this.ended) return;
          stop();
          resolve();
        });
      });
    }
    if (this.done?.finish_reasons[choice] === "stop") return this.folds[choice].value;
    throw this.error ?? this.#incomplete(choice);
  }

  /** Stop the run. Its end is told at once; the promise is kept when the service knows. */
  async cancel() {
    if (this.ended && this.state !== "disconnected") return;
    this.#cancelled = true;
    if (!this.#resumable) return this.#leave();
    this.#end("cancelled", new CancelledError(this.value));
    // A run without a name cannot be cancelled: its first event brings the name.
    if (this.id !== null) await this.#dismissal();
  }

  /** Tell the service that the run is not wanted. */
  async #dismissal() {
    try {
      await this.#transport.command(/** @type {string} */ (this.id), "cancel", "");
    } finally {
      this.#connection.abort();
    }
  }

  /** What still comes of a run that was cancelled is dropped, but for its name. @param {string} event @param {any} data */
  #dismiss(event, data) {
    if (event === "start" && this.id === null) {
      this.id = data.run;
      this.#dismissal().catch(() => {});
    }
    return false;
  }

  /** Correct a value that is final. `raw` is the value's own JSON, where a number does not fit a double.
   *
   * @param {string} path @param {unknown} value @param {{choice?: number, raw?: string | null}} [options]
   * @returns {Promise<{run: string, seq: number}>}
   */
  edit(path, value, { choice = 0, raw = null } = {}) {
    return this.#say("edit", `"path":${JSON.stringify(path)},"value":${raw ?? JSON.stringify(value)},"choice":${choice}`);
  }

  /**
   * Say something more; it joins the conversation, and the run goes on from where it is.
   *
   * @param {string} text @param {{choice?: number | null}} [options] all choices, if none is given
   * @returns {Promise<{run: string, seq: number}>}
   */
  steer(text, { choice = null } = {}) {
    return this.#say("steer", `"text":${JSON.stringify(text)},"choice":${choice}`);
  }

  /** Take up a run again whose connection was lost. Nothing is asked for anew. */
  resume() {
    if (!this.canResume) throw new TypeError("This run cannot be resumed: see canResume");
    this.error = null;
    this.#unbroken = false;
    this.#setState("reconnecting");
    void this.#follow();
  }

  /** What `client.join(saved.run, saved)` needs to go on later, or after a reload, without what is here already. */
  save() {
    return { run: this.id, after: this.#place, start: this.start, documents: this.#documents() };
  }

  /** @param {{after: number, start: any, documents: any[]}} saved */
  #load({ after, start, documents }) {
    this.start = start;
    this.#place = after;
    this.folds = documents.map((document) => {
      const fold = new Fold();
      fold.restore(document);
      return fold;
    });
    this.#seqs = documents.map(({ seq }) => seq);
  }

  #documents() {
    return this.folds.map((fold, choice) => ({ seq: this.#seqs[choice], choice, ...fold.snapshot() }));
  }

  /** @param {string} op @param {string} fields */
  #say(op, fields) {
    if (this.id === null) return Promise.reject(new TypeError("The run has not begun yet"));
    return this.#transport.command(this.id, op, fields);
  }

  // -- reading

  /** Read to the end, over as many connections as it takes. @param {string | null} [body] the request of a run to be started */
  async #follow(body = null) {
    let failures = 0;
    for (;;) {
      this.#connection = new AbortController();
      if (this.#cancelled) return this.#leave();
      const { signal } = this.#connection;
      try {
        const frames = body === null ? this.#join(signal) : this.#transport.start(body, signal);
        body = null; // a request is sent once
        for await (const frame of frames) {
          if (this.#take(frame)) return;
          failures = 0;
        }
        throw new ConnectionLostError("The connection ended before the document did");
      } catch (error) {
        if (this.#cancelled) return this.#leave();
        const pause = this.#pauseAfter(error, failures++);
        if (pause === null) return this.#fail(error);
        this.#unbroken = false;
        this.#setState("reconnecting");
        await pausing(pause, signal);
      }
    }
  }

  /** @param {AbortSignal} signal */
  #join(signal) {
    // After a snapshot of some choices only, what follows the place would be told to these twice: begin with all of them.
    const apart = this.#seqs.some((seq) => seq > (this.#place ?? 0));
    return this.#transport.join(/** @type {string} */ (this.id), apart ? null : this.#place, signal);
  }

  /** @param {unknown} error @param {number} failures in a row @returns {number | null} ms until the next attempt; null for none */
  #pauseAfter(error, failures) {
    if (!this.#isPassing(error) || !this.#resumable || this.id === null || failures >= this.client.maxReconnects) return null;
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2);
    return Math.max(pause, (error instanceof ApiError && error.retryAfterMs) || 0);
  }

  /** Whether a run may well go on behind this error. @param {unknown} error */
  #isPassing(error) {
    if (error instanceof RunError) return error.code === "slow_consumer" && this.#resumable;
    return error instanceof ConnectionLostError || (error instanceof ApiError && error.retriable);
  }

  /** @param {Frame} frame @returns {boolean} whether it was the last one */
  #take({ event: name, id, data: raw }) {
    const handle = Run.#handlers.get(name);
    if (!handle) return false; // a later version may tell more
    let data;
    try {
      data = JSON.parse(raw);
    } catch {
      throw new ProtocolError(`The data of "${name}" are not JSON`);
    }
    if (this.#cancelled) return this.#dismiss(name, data);
    if (name === "error" && data.code === "slow_consumer" && this.#resumable) throw new RunError(data.message, data);
    const changes = handle(this, data);
    const place = Number(id.slice(id.lastIndexOf(":") + 1));
    if (id && Number.isSafeInteger(place)) this.#place = place;
    if (name === "done") this.#watchForBuffers();
    if (!this.ended) this.#setState("streaming");
    if (name === "done" || name === "error") this.#last = { event: name, id, data };
    this.#tell(name, { event: name, id, data, raw });
    for (const change of changes) this.#notify(change);
    if (name === "done") this.#finish();
    else if (name === "error") this.#fail(new RunError(data.message, data));
    return this.ended;
  }

  /** @param {any} data */
  #takeStart(data) {
    this.start = data;
    this.id = data.run;
    while (this.folds.length < data.choices) {
      this.folds.push(new Fold());
      this.#seqs.push(0);
    }
    return [];
  }

  /** @param {any} data */
  #takeDelta({ seq, choice, ops }) {
    this.#firstDelta ??= performance.now();
    const fold = this.folds[choice];
    this.#seqs[choice] = seq;
    return ops.map((/** @type {any} */ op) => {
      fold.apply(op);
      return { ...op, choice, value: fold.nodes.get(op.path)?.value, final: fold.status.get(op.path) === "complete" };
    });
  }

  /** @param {any} data @returns {any[]} a change for each value that is not what it was */
  #takeSnapshot({ seq, choice, edited, ...document }) {
    const fold = this.folds[choice];
    const before = new Map(fold.nodes);
    fold.restore(document);
    this.#seqs[choice] = seq;
    const changed = [...fold.nodes.values()].filter((node) => differs(before.get(node.path), node));
    return changed.map((node) => ({ ...snapshotOf(node, choice), op: node.path === edited ? "edit" : "snapshot" }));
  }

  // -- telling

  /** @param {string} path @param {(change: any) => void} listener @param {number} choice */
  #subscribe(path, listener, choice) {
    const subscription = { match: matcher(path), listener, choice };
    this.#subscriptions.add(subscription);
    for (const node of this.folds[choice]?.nodes.values() ?? []) {
      const keys = subscription.match(splitPointer(node.path));
      if (keys) safely(listener, { ...snapshotOf(node, choice), keys });
    }
    return () => void this.#subscriptions.delete(subscription);
  }

  /** @param {any} change */
  #notify(change) {
    if (this.#subscriptions.size === 0) return;
    const tokens = splitPointer(change.path);
    for (const { match, listener, choice } of [...this.#subscriptions]) {
      const keys = choice === change.choice ? match(tokens) : null;
      if (keys) safely(listener, { ...change, keys });
    }
  }

  /** @param {string} name @param {{event: string, id: string, data: any, raw: string}} event */
  #tell(name, event) {
    for (const channel of this.#channels) {
      if (channel.items.length < MAX_BACKLOG) channel.push({ event: name, id: event.id, data: event.data });
      else channel.items = this.#soFar();
    }
    for (const listener of this.#listeners.get(name) ?? []) safely(listener, event.data);
    for (const listener of this.#listeners.get("event") ?? []) safely(listener, event);
  }

  /** @returns {any[]} events that say the same as all that came so far */
  #soFar() {
    if (this.start === null) return [];
    const at = (/** @type {number | null} */ place) => `${this.id}:${place ?? 0}`;
    const documents = this.#documents().filter(({ seq }) => seq > 0);
    const events = [{ event: "start", id: at(0), data: this.start }];
    for (const data of documents) events.push({ event: "snapshot", id: at(this.#place), data });
    return this.#last ? [...events, this.#last] : events;
  }

  /** @param {string} state */
  #setState(state) {
    if (this.state === state) return;
    this.state = state;
    for (const listener of [...(this.#listeners.get("state") ?? [])]) safely(listener, state);
  }

  // -- ending

  /** @param {any} data */
  #takeDone(data) {
    this.done = data;
    return [];
  }

  #finish() {
    const { status, finish_reason } = this.done;
    if (status === "complete") this.#end("complete");
    else this.#end(finish_reason === "cancelled" ? "cancelled" : "incomplete", this.#incomplete(0));
    this.#connection.abort();
  }

  /** @param {unknown} error */
  #fail(error) {
    const lost = this.#isPassing(error) && (error instanceof ConnectionLostError || this.id !== null);
    this.#end(lost ? "disconnected" : "failed", error instanceof ConstrainedError ? error : new ProtocolError(`${error}`));
    this.#connection.abort();
  }

  #leave() {
    this.#end("cancelled", new CancelledError(this.value));
    this.#connection.abort();
  }

  /** @param {string} state @param {ConstrainedError | null} [error] */
  #end(state, error = null) {
    if (this.ended && this.state !== "disconnected") return;
    this.error = error;
    if (state !== "disconnected") this.#forgetSignal();
    this.#setState(state);
    for (const channel of this.#channels) channel.end(this.#loopError());
    this.#channels.clear();
  }

  /** What a loop over the events throws: it has seen no event that says so. A run that was cancelled here ends its loops quietly. */
  #loopError() {
    return this.#last !== null || this.error instanceof CancelledError ? null : this.error;
  }

  /** @param {number} choice */
  #incomplete(choice) {
    const reason = this.done?.finish_reasons[choice] ?? "unknown";
    const value = this.folds[choice]?.value;
    if (reason === "cancelled") return new CancelledError(value);
    const why = reason === "length" ? "The token limit was reached" : `The run stopped (${reason})`;
    return new IncompleteError(`${why} before the document was whole.`, reason, value);
  }

  /** A document that took long to write and came all at once was held back on its way. */
  #watchForBuffers() {
    const { total_ms, ttft_ms } = this.done.timings;
    if (!this.#unbroken || this.request === null || this.#firstDelta === null) return;
    const now = performance.now();
    const [written, seen] = [total_ms - ttft_ms, now - this.#firstDelta];
    if (written < BUFFERED_MIN_MS || now - this.#began < written || seen > written * BUFFERED_SHARE) return;
    this.client.warnOnce(
      `constrained: this stream was written for ${Math.round(written)} ms and arrived within ${Math.round(seen)} ms. Something ` +
        "on the way buffers it: switch buffering and compression of text/event-stream off in your proxy.",
    );
  }
}

/** @param {string} pattern @returns {(tokens: string[]) => string[] | null} the tokens that the stars stand for */
function matcher(pattern) {
  const parts = splitPointer(pattern);
  const deep = parts.at(-1) === "**";
  if (deep) parts.pop();
  return (tokens) => {
    if (deep ? tokens.length < parts.length : tokens.length !== parts.length) return null;
    if (parts.some((part, index) => part !== "*" && part !== tokens[index])) return null;
    return tokens.filter((_, index) => parts[index] === "*");
  };
}

/** @param {Node | undefined} before @param {Node} now */
function differs(before, now) {
  if (!before || before.open !== now.open || before.kind !== now.kind) return true;
  return (now.kind === "string" || now.kind === "scalar") && before.value !== now.value;
}

/** @param {Node} node @param {number} choice */
function snapshotOf({ path, value, open }, choice) {
  return { op: "snapshot", path, choice, value, final: !open };
}

/** A listener's own error is the page's to see, and not the run's. @param {(told: any) => void} listener @param {any} told */
function safely(listener, told) {
  try {
    listener(told);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** @param {number} ms @param {AbortSignal} signal ends the pause */
function pausing(ms, signal) {
  return new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
    const timer = setTimeout(resolve, ms);
    const stop = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", stop, { once: true });
  });
}

// -- The client

/** A client of one service. */
export class Constrained {
  #warned = false;

  /**
   * @param {{baseUrl?: string, apiKey?: string | null, headers?: Record<string, string>, fetch?: typeof globalThis.fetch,
   *   transport?: "http" | "websocket", WebSocket?: any, timeoutMs?: number, maxReconnects?: number,
   *   warn?: (message: string) => void}} [options]
   */
  constructor(options = {}) {
    const fetch = options.fetch ?? globalThis.fetch;
    this.baseUrl = (options.baseUrl ?? "").replace(/\/+$/, "");
    this.headers = { ...(options.apiKey ? { Authorization: `Bearer ${options.apiKey}` } : {}), ...options.headers };
    this.fetch = (/** @type {string} */ url, /** @type {RequestInit} */ init) => fetch(url, init);
    this.WebSocket = options.WebSocket ?? globalThis.WebSocket;
    this.transport = options.transport ?? "http";
    this.timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.maxReconnects = options.maxReconnects ?? DEFAULT_MAX_RECONNECTS;
    this.warn = options.warn ?? ((/** @type {string} */ message) => console.warn(message));
    if (this.transport === "websocket" && !this.WebSocket) throw new TypeError("There is no WebSocket here: pass one as WebSocket");
  }

  /**
   * Start a run. The request is sent once and never again.
   *
   * @param {Record<string, any> | string} request the body of `POST /v1/structured/stream`; a string is sent as it is
   * @param {{signal?: AbortSignal}} [options] aborting it cancels the run
   * @returns {Run}
   */
  stream(request, { signal } = {}) {
    return new Run(this, { request, signal });
  }

  /**
   * Join a run that was started elsewhere, or before a reload: the document so far, then what follows.
   *
   * @param {string} run
   * @param {{after?: number | null, start?: any, documents?: any[], signal?: AbortSignal}} [saved] what `run.save()` gave
   * @returns {Run}
   */
  join(run, { signal, ...saved } = {}) {
    const known = saved.after !== undefined && saved.after !== null;
    if (known && !saved.documents) throw new TypeError("after needs the documents as they were then: pass all that run.save() gave");
    return new Run(this, { id: run, saved: known ? saved : null, signal });
  }

  /** Run to the end and get one JSON document. @param {Record<string, any> | string} request @param {{signal?: AbortSignal}} [options] */
  complete(request, { signal } = {}) {
    const body = typeof request === "string" ? request : JSON.stringify(request);
    return this.call("v1/structured", { method: "POST", body, signal });
  }

  /** Whether a schema is supported, keyword by keyword. @param {unknown} schema @param {Record<string, any>} [options] */
  check(schema, options = {}) {
    return this.call("v1/schemas/check", { method: "POST", body: JSON.stringify({ schema, ...options }) });
  }

  /** The models that are served. @returns {Promise<any[]>} */
  async models() {
    return (await this.call("v1/models", { method: "GET" })).data;
  }

  /** @param {string} path @param {RequestInit} init @returns {Promise<any>} the JSON of the answer */
  async call(path, init) {
    try {
      return await (await this.request(path, init, "application/json")).json();
    } catch (error) {
      if (error instanceof ConstrainedError || init.signal?.aborted) throw error;
      throw new ConnectionLostError("The service did not answer", error);
    }
  }

  /** @param {string} path @param {RequestInit} init @param {string} accept @returns {Promise<Response>} one that is 2xx */
  async request(path, init, accept) {
    const headers = new Headers({ Accept: accept, ...this.headers });
    if (init.body) headers.set("Content-Type", "application/json");
    const response = await this.fetch(this.#url(path), { ...init, headers });
    if (!response.ok) throw await ApiError.from(response);
    return response;
  }

  socketUrl() {
    const url = new URL(this.#url("v1/structured/ws"), globalThis.document?.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    return url.href;
  }

  /** @param {string} message */
  warnOnce(message) {
    if (!this.#warned) this.warn(message);
    this.#warned = true;
  }

  /** @param {string} path */
  #url(path) {
    return this.baseUrl === "" ? path : `${this.baseUrl}/${path}`;
  }
}
