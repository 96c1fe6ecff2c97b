/**
 * The fold of a delta stream: ops in, the value so far and the status of every path out, at constant cost per op.
 * Knows no schema and draws nothing.
 */

import { join, lastToken, parent } from "./pointer.js";

/** @typedef {"next" | "streaming" | "complete" | "interrupted"} Status */
/** @typedef {{kind: "object", open: boolean, members: Map<string, Node>}} ObjectNode */
/** @typedef {{kind: "array", open: boolean, items: Node[]}} ArrayNode */
/** @typedef {{kind: "string", open: boolean, text: string}} StringNode */
/** @typedef {{kind: "scalar", open: false, value: unknown, raw: string | null}} ScalarNode `raw`: the exact lexeme */
/** @typedef {ObjectNode | ArrayNode | StringNode | ScalarNode} Node */
/** @typedef {{op: string, path: string, [key: string]: unknown}} Op */

/** The stream broke one of the protocol's invariants. */
export class ProtocolError extends Error {}

export class Fold {
  /** @type {Node | null} */
  root = null;
  /** @type {Map<string, Node>} every value begun, by path, in document order */
  nodes = new Map();
  /** @type {Map<string, Status>} */
  status = new Map();
  /** @type {Map<string, string>} the schema pointer of each decided union, by path */
  variants = new Map();

  /** @param {Op} op */
  apply(op) {
    const step = STEPS[op.op];
    if (!step) throw new ProtocolError(`unknown op ${JSON.stringify(op.op)}`);
    step(this, op);
  }

  /**
   * Start again from a snapshot event.
   *
   * @param {unknown} value
   * @param {string[]} open
   * @param {Record<string, Status>} status
   */
  restore(value, open, status) {
    this.root = null;
    this.nodes.clear();
    this.status = new Map(Object.entries(status));
    const opened = new Set(open);
    if (value === null && !this.status.has("")) return;
    walk(value, "", (path, node) => {
      node.open = opened.has(path);
      this.attach(path, node);
      this.status.set(path, node.open ? "streaming" : "complete");
    });
  }

  /** Mark what the end of the run left open. @returns {string[]} the paths that changed */
  interrupt() {
    const changed = [];
    for (const [path, status] of this.status) {
      if (status === "streaming") this.status.set(path, "interrupted");
      else if (status === "next") this.status.delete(path);
      else continue;
      changed.push(path);
    }
    return changed;
  }

  /**
   * Replace a closed string or scalar by what the user typed.
   *
   * @param {string} path
   * @param {unknown} value
   * @param {string | null} raw
   */
  edit(path, value, raw = null) {
    const node = this.nodes.get(path);
    if (node?.kind === "string") node.text = String(value);
    else if (node?.kind === "scalar") Object.assign(node, { value, raw });
    else throw new ProtocolError(`nothing to edit at ${path}`);
  }

  /** @returns {unknown} the value so far as plain data; undefined before the first byte */
  get value() {
    return this.root === null ? undefined : plain(this.root);
  }

  /** @returns {string} the value so far as indented JSON; what is still open is left unclosed */
  get text() {
    return this.root === null ? "" : print(this.root, "\n");
  }

  /** Hang a new node into its open parent. @param {string} path @param {Node} node */
  attach(path, node) {
    if (path === "") this.root = node;
    else this.#attachBelow(this.nodes.get(parent(path)), lastToken(path), path, node);
    this.nodes.set(path, node);
  }

  /** @param {Node | undefined} above @param {string} token @param {string} path @param {Node} node */
  #attachBelow(above, token, path, node) {
    if (above?.kind === "object") above.members.set(token, node);
    else if (above?.kind === "array" && Number(token) === above.items.length) above.items.push(node);
    else throw new ProtocolError(`no open parent for ${path}`);
  }
}

/** @type {Record<string, (fold: Fold, op: any) => void>} */
const STEPS = {
  field: (fold, { path }) => fold.status.set(path, "next"),
  variant: (fold, { path, schema_pointer }) => fold.variants.set(path, schema_pointer),
  open(fold, { path, type }) {
    begin(fold, path, empty(type), "streaming");
  },
  text(fold, { path, add }) {
    const node = fold.nodes.get(path);
    if (node?.kind !== "string" || !node.open) throw new ProtocolError(`no open string at ${path}`);
    node.text += add;
  },
  set(fold, { path, value, raw }) {
    begin(fold, path, { kind: "scalar", open: false, value, raw: raw ?? null }, "complete");
  },
  close(fold, { path }) {
    const node = fold.nodes.get(path);
    if (!node?.open) throw new ProtocolError(`nothing open at ${path}`);
    node.open = false;
    fold.status.set(path, "complete");
  },
};

/** @param {Fold} fold @param {string} path @param {Node} node @param {Status} status */
function begin(fold, path, node, status) {
  if (fold.nodes.has(path)) throw new ProtocolError(`${path} begins twice`);
  if (path !== "" && !fold.nodes.get(parent(path))?.open) throw new ProtocolError(`no open parent for ${path}`);
  fold.attach(path, node);
  fold.status.set(path, status);
}

/** @param {string} type @returns {Node} */
function empty(type) {
  if (type === "object") return { kind: "object", open: true, members: new Map() };
  if (type === "array") return { kind: "array", open: true, items: [] };
  if (type === "string") return { kind: "string", open: true, text: "" };
  throw new ProtocolError(`cannot open a ${type}`);
}

/** @param {unknown} value @param {string} path @param {(path: string, node: Node) => void} visit parents first */
function walk(value, path, visit) {
  if (typeof value === "string") return visit(path, { kind: "string", open: false, text: value });
  if (value === null || typeof value !== "object") return visit(path, { kind: "scalar", open: false, value, raw: null });
  visit(path, empty(Array.isArray(value) ? "array" : "object"));
  for (const [key, below] of Object.entries(value)) walk(below, join(path, key), visit);
}

/** @param {Node} node @returns {unknown} */
function plain(node) {
  if (node.kind === "string") return node.text;
  if (node.kind === "scalar") return node.value;
  if (node.kind === "array") return node.items.map(plain);
  return Object.fromEntries([...node.members].map(([key, below]) => [key, plain(below)]));
}

/** @param {Node} node @param {string} margin a newline and the indent of the line that the node stands on @returns {string} */
function print(node, margin) {
  if (node.kind === "scalar") return node.raw ?? JSON.stringify(node.value);
  if (node.kind === "string") return node.open ? JSON.stringify(node.text).slice(0, -1) : JSON.stringify(node.text);
  const inner = `${margin}  `;
  const lines =
    node.kind === "array"
      ? node.items.map((below) => inner + print(below, inner))
      : [...node.members].map(([key, below]) => `${inner}${JSON.stringify(key)}: ${print(below, inner)}`);
  const [left, right] = node.kind === "array" ? "[]" : "{}";
  return left + lines.join(",") + (node.open ? "" : (lines.length ? margin : "") + right);
}
