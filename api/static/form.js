/**
 * A form that fills itself: widgets drawn from a schema, filled from a fold, at most once per path and animation frame.
 *
 * Ops only mark their path as dirty; a frame brings each dirty path in line with the fold. So a frame costs the same
 * however many ops it stands for, and a snapshot needs no code of its own.
 */

import { Fold } from "./fold.js";
import { join, lastToken, parent } from "./pointer.js";
import { Group, humanise, widgetFor } from "./widgets.js";

/** @typedef {import("./schema.js").Field} Field */
/** @typedef {import("./widgets.js").Widget} Widget */

export class Form {
  fold = new Fold();
  /** @type {Map<string, Widget>} */
  #widgets = new Map();
  /** @type {Set<string>} */
  #dirty = new Set();
  #frame = 0;

  /**
   * @param {HTMLElement} host where the widgets go
   * @param {() => void} onChange called after each frame that drew something, and after each edit
   */
  constructor(host, onChange) {
    this.host = host;
    this.onChange = onChange;
  }

  /** Draw every field that is known beforehand. @param {import("./schema.js").SchemaTree} tree */
  draw(tree) {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.fold = new Fold();
    this.#widgets.clear();
    this.#dirty.clear();
    const label = tree.root.title ?? "Document";
    const root = this.#build({ path: "", field: tree.root, label, required: true });
    this.host.replaceChildren(root.element);
  }

  /** @param {import("./fold.js").Op} op */
  apply(op) {
    this.fold.apply(op);
    this.#touch(op.path);
  }

  /** @param {{value: unknown, open: string[], status: Record<string, import("./fold.js").Status>}} snapshot */
  restore(snapshot) {
    this.fold.restore(snapshot.value, snapshot.open, snapshot.status);
    for (const path of this.fold.nodes.keys()) this.#touch(path);
    for (const path of this.fold.status.keys()) this.#touch(path);
  }

  /** The run ended early: what is complete stays, what is open is marked. */
  interrupt() {
    for (const path of this.fold.interrupt()) this.#touch(path);
  }

  /** @param {string} path @returns {string} the label that the user sees there, or its key */
  labelOf(path) {
    return this.#widgets.get(path)?.place.label ?? humanise(path === "" ? "document" : lastToken(path));
  }

  /** Bring the page in line with the fold now, not with the next frame. */
  flush() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const paths = [...this.#dirty];
    this.#dirty.clear();
    for (const path of paths) this.#sync(path);
    this.onChange();
  }

  /** @param {string} path */
  #touch(path) {
    this.#dirty.add(path);
    this.#frame ||= requestAnimationFrame(() => this.flush());
  }

  /** @param {string} path */
  #sync(path) {
    const widget = this.#settle(path);
    if (!widget) return;
    const node = this.fold.nodes.get(path);
    const status = this.fold.status.get(path) ?? "pending";
    widget.show(status, node);
    if (status === "complete" && node?.kind === "object") this.#markAbsent(path);
  }

  /** The widget at a path in the shape that the fold asks for, made or exchanged where needed. @param {string} path */
  #settle(path) {
    const widget = this.#widgets.get(path) ?? this.#append(path);
    if (!widget) return null;
    const field = this.#fieldNow(path, widget.field);
    const settled = this.#reshape(widget, field);
    if (settled instanceof Group && (this.fold.nodes.has(path) || !field.collapsed)) this.#drawMembers(settled, field);
    return settled;
  }

  /** @param {string} path @param {Field} field what was drawn @returns {Field} what is known by now */
  #fieldNow(path, field) {
    const variant = this.fold.variants.get(path);
    const known = variant === undefined ? field : field.tree.at(variant.replace(/^#/, ""), field.place, field.trail);
    const node = this.fold.nodes.get(path);
    return node ? known.as(typeOf(node)) : known;
  }

  /** @param {Widget} widget @param {Field} field @returns {Widget} */
  #reshape(widget, field) {
    if (field === widget.field || (widget instanceof Group && widget.field.kind === field.kind)) return widget;
    const { path, required } = widget.place;
    const settled = this.#build({ ...widget.place, field, required });
    const above = path === "" ? null : this.#widgets.get(parent(path));
    if (above instanceof Group) above.replace(lastToken(path), settled);
    else this.host.replaceChildren(settled.element);
    return settled;
  }

  /** A widget for a path that was not known beforehand: a row, or an additional member. @param {string} path */
  #append(path) {
    const above = path === "" ? null : this.#widgets.get(parent(path));
    if (!(above instanceof Group)) return null;
    const row = above.field.kind === "array";
    // A row begins with its value; until then the list does not grow.
    if (row && !this.fold.nodes.has(path)) return null;
    const widget = this.#build(row ? rowPlace(above, path) : memberPlace(above, path));
    above.put(lastToken(path), widget);
    return widget;
  }

  /** @param {import("./widgets.js").Place} place @returns {Widget} */
  #build(place) {
    const widget = widgetFor(place, (value, raw) => this.#edit(place.path, value, raw));
    this.#widgets.set(place.path, widget);
    if (widget instanceof Group && !place.field.collapsed) this.#drawMembers(widget, place.field);
    return widget;
  }

  /** Add the known members of an object that are not there yet, each in its turn. @param {Group} group @param {Field} field */
  #drawMembers(group, field) {
    if (group.drawn === field) return;
    group.drawn = field;
    group.field = field;
    if (field.kind !== "object") return;
    let after = null;
    for (const { key, required, field: member } of field.members) {
      let widget = group.children.get(key);
      if (!widget) {
        const path = join(group.place.path, key);
        widget = this.#build({ path, field: member, label: member.title ?? humanise(key), required });
        group.put(key, widget, after ? after.nextElementSibling : group.body.firstElementChild);
      }
      after = widget.element;
    }
  }

  /** @param {string} path an object that is closed */
  #markAbsent(path) {
    const group = this.#widgets.get(path);
    if (!(group instanceof Group)) return;
    for (const [key, widget] of group.children) {
      if (!this.fold.nodes.has(join(path, key))) widget.show("absent", undefined);
    }
  }

  /** @param {string} path @param {unknown} value @param {string | null} raw */
  #edit(path, value, raw) {
    this.fold.edit(path, value, raw);
    this.onChange();
  }
}

/** @param {Group} list @param {string} path @returns {import("./widgets.js").Place} */
function rowPlace(list, path) {
  const index = Number(lastToken(path));
  const field = list.field.item(index);
  const context = list.place.label;
  // A scalar's row shows its number alone; the list's name is there for those who cannot see the list around it.
  const bare = !["object", "array", "union", "any"].includes(field.kind);
  const label = bare ? String(index + 1) : `${field.title ?? "Entry"} ${index + 1}`;
  return { path, field, label, context, required: true };
}

/** @param {Group} group @param {string} path @returns {import("./widgets.js").Place} */
function memberPlace(group, path) {
  const field = group.field.member(lastToken(path));
  return { path, field, label: field.title ?? humanise(lastToken(path)), required: true };
}

/** @param {import("./fold.js").Node} node @returns {import("./schema.js").Kind} */
function typeOf(node) {
  if (node.kind !== "scalar") return node.kind;
  if (node.value === null) return "null";
  return /** @type {import("./schema.js").Kind} */ (typeof node.value);
}
