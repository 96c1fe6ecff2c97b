/**
 * A form that fills itself: widgets drawn from a schema, filled from a fold, at most once per path and animation frame.
 *
 * Whoever changes the fold only marks the path (`touch`); a frame brings each marked path in line with the fold. So a frame
 * costs the same however many ops it stands for, and a snapshot needs no code of its own.
 */

import { Fold, joinPointer as join, lastToken, parentPointer as parent } from "../constrained.js";
import { SchemaTree } from "./schema.js";
import { humanise } from "./shape.js";
import { Group, Leaf, widgetFor } from "./widgets.js";

/** @typedef {import("./schema.js").Field} Field */
/** @typedef {import("./schema.js").Kind} Kind */
/** @typedef {import("./widgets.js").Widget} Widget */
/** @typedef {import("./widgets.js").Place} Place */
/** @typedef {import("./words.js").Say} Say */

export class View {
  fold = new Fold();
  /** Whether nothing more will come: what is open then was cut off. */
  ended = false;
  /** @type {Map<string, Widget>} */
  #widgets = new Map();
  /** @type {SchemaTree | null} */
  #tree = null;
  /** @type {Set<string>} */
  #dirty = new Set();
  #frame = 0;

  /**
   * @param {HTMLElement} host where the widgets go
   * @param {{onDraw: () => void, onEdit: (path: string, value: unknown, raw: string | null) => void, say: Say}} told
   */
  constructor(host, told) {
    this.host = host;
    this.told = told;
  }

  /** Draw every field that is known beforehand. @param {unknown} schema @param {string[]} [order] @param {Fold} [fold] */
  draw(schema, order, fold = new Fold()) {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.fold = fold;
    this.ended = false;
    this.#dirty.clear();
    try {
      this.#drawTree(new SchemaTree(schema, order));
    } catch {
      // Not a schema: the service says what is wrong with it, once it is asked.
      this.#drawTree(new SchemaTree(true));
    }
  }

  /** Draw all that there is anew. */
  redraw() {
    if (this.#tree) this.#drawTree(this.#tree);
    for (const path of this.fold.status.keys()) this.touch(path);
  }

  /** @param {SchemaTree} tree */
  #drawTree(tree) {
    const { root } = tree;
    this.#tree = tree;
    this.#widgets.clear();
    const widget = this.#build({ path: "", field: root, label: root.title ?? this.told.say("document"), required: true });
    this.host.replaceChildren(widget.element);
  }

  /** @param {string} path one whose value or state has changed */
  touch(path) {
    this.#dirty.add(path);
    this.#frame ||= requestAnimationFrame(() => this.flush());
  }

  /** The run has ended, or goes on again. @param {boolean} ended */
  end(ended) {
    this.ended = ended;
    for (const [path, status] of this.fold.status) if (status !== "complete") this.touch(path);
    this.flush();
  }

  /** Bring the page in line with the fold now, not with the next frame. */
  flush() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const paths = [...this.#dirty];
    this.#dirty.clear();
    for (const path of paths) this.#sync(path);
    this.told.onDraw();
  }

  /** @param {string} path @param {string} why what is wrong with the value that the user gave there */
  blame(path, why) {
    this.#sync(path);
    const widget = this.#widgets.get(path);
    if (widget instanceof Leaf) widget.blame(why);
  }

  /** @param {string} path @returns {string} the label that the user sees there, or its key */
  labelOf(path) {
    return this.#widgets.get(path)?.place.label ?? humanise(lastToken(path));
  }

  /** @returns {number} how much of the outermost members has been written or left out, 0 to 1 */
  get progress() {
    const root = this.#widgets.get("");
    if (this.fold.status.get("") === "complete") return 1;
    if (!(root instanceof Group) || root.children.size === 0) return 0;
    const written = [...root.children.keys()].findLastIndex((key) => this.fold.status.get(join("", key)) === "complete") + 1;
    return written / root.children.size;
  }

  /** @param {string} path */
  #sync(path) {
    const widget = this.#settle(path);
    if (!widget) return;
    const node = this.fold.nodes.get(path);
    const state = this.#stateOf(path);
    widget.show(state, node);
    if (state === "complete" && node?.kind === "object") this.#markAbsent(path);
  }

  /** @param {string} path @returns {import("./widgets.js").State} */
  #stateOf(path) {
    const status = this.fold.status.get(path);
    if (!this.ended || status === "complete") return status ?? "pending";
    return status === "streaming" ? "interrupted" : "pending";
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
    const { path } = widget.place;
    const settled = this.#build({ ...widget.place, field });
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
    const widget = this.#build(row ? rowPlace(above, path, this.told.say("entry")) : memberPlace(above, path));
    above.put(lastToken(path), widget);
    return widget;
  }

  /** @param {Place} place @returns {Widget} */
  #build(place) {
    const widget = widgetFor(place, this.told.say, (value, raw) => this.told.onEdit(place.path, value, raw));
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
    /** @type {Element | null} */
    let after = null;
    for (const { key, required, field: member } of field.members) {
      const before = group.children.get(key);
      const path = join(group.place.path, key);
      const place = { path, field: member, label: member.title ?? humanise(key), required, cell: group.place.row };
      if (!before) group.put(key, this.#build(place), after ? after.nextElementSibling : group.body.firstElementChild);
      else if (before instanceof Leaf && !before.element.matches(":focus-within")) this.#narrow(group, key, place);
      after = group.children.get(key)?.element ?? null;
    }
  }

  /** A union that is decided leaves its members fewer values. @param {Group} group @param {string} key @param {Place} place */
  #narrow(group, key, place) {
    group.replace(key, this.#build(place));
    this.touch(place.path);
  }

  /** @param {string} path an object that is closed */
  #markAbsent(path) {
    const group = this.#widgets.get(path);
    if (!(group instanceof Group)) return;
    for (const [key, widget] of group.children) {
      if (!this.fold.nodes.has(join(path, key))) widget.show("absent", undefined);
    }
  }
}

/** @param {Group} list @param {string} path @param {string} entry what a row without a title is called @returns {Place} */
function rowPlace(list, path, entry) {
  const index = Number(lastToken(path));
  const field = list.field.item(index);
  const context = list.place.label;
  // A scalar's row shows its number alone; the list's name is there for those who cannot see the list around it.
  const bare = !["object", "array", "union", "any"].includes(field.kind);
  const label = bare ? String(index + 1) : `${field.title ?? entry} ${index + 1}`;
  return { path, field, label, context, required: true, row: list.columns !== null };
}

/** @param {Group} group @param {string} path @returns {Place} */
function memberPlace(group, path) {
  const field = group.field.member(lastToken(path));
  return { path, field, label: field.title ?? humanise(lastToken(path)), required: true };
}

/** @param {{kind: string, value: unknown}} node @returns {Kind} */
function typeOf({ kind, value }) {
  if (kind !== "scalar") return /** @type {Kind} */ (kind);
  return value === null ? "null" : /** @type {Kind} */ (typeof value);
}
