/**
 * What a form needs to know of a JSON Schema: a tree of fields, expanded only as far as it is drawn.
 *
 * References are followed, `null` beside another type becomes a mark, unions keep their arms, and recursion ends in a
 * collapsed field. It validates nothing: the service does.
 */

import { joinPointer as join, splitPointer as tokens } from "../constrained.js";
import { SCALARS, annotationsOf, armsOf, findAnchor, isNullable, kindOf, overlay } from "./keywords.js";

/** @typedef {{key: string, required: boolean, field: Field}} Member */
/** @typedef {import("./keywords.js").Kind} Kind */
/** @typedef {import("./keywords.js").Schema} Schema */

const MAX_HOPS = 64;

export class SchemaTree {
  /** @type {Map<string, Field>} */
  #fields = new Map();

  /**
   * @param {unknown} schema
   * @param {string[]} [order] JSON Pointers of the known fields in generation order, `*` for any index after the prefix
   */
  constructor(schema, order = []) {
    this.schema = schema;
    /** @type {Map<string, number>} */
    this.rank = new Map(order.map((path, index) => [path, index]));
    this.root = this.field(schema, "", "", []);
  }

  /**
   * The field of a subschema at one place of the document.
   *
   * @param {string} pointer JSON Pointer into the schema
   * @param {string} place data path with `*` for indices
   * @param {string[]} trail schema pointers of the fields around it
   */
  at(pointer, place = "", trail = []) {
    const name = `${pointer} ${place}`;
    const known = this.#fields.get(name);
    if (known) return known;
    const field = this.field(this.lookUp(pointer) ?? true, pointer, place, trail);
    this.#fields.set(name, field);
    return field;
  }

  /**
   * A field, where "a scalar or null" is that scalar with a mark and no union.
   *
   * @param {unknown} schema
   * @param {string} pointer
   * @param {string} place
   * @param {string[]} trail
   */
  field(schema, pointer, place, trail) {
    const field = new Field(this, schema, pointer, place, trail);
    if (field.kind !== "union" || !field.nullable || field.collapsed) return field;
    const [arm, ...others] = field.arms;
    if (others.length || !(SCALARS.has(arm.kind) || arm.kind === "enum")) return field;
    arm.nullable = true;
    arm.schema = { ...arm.schema, ...annotationsOf(field.schema) };
    return arm;
  }

  /** @param {string} pointer @returns {any} the subschema there, or undefined */
  lookUp(pointer) {
    return tokens(pointer).reduce((/** @type {any} */ schema, token) => schema?.[token], this.schema);
  }

  /**
   * A schema with its references followed; keywords beside a `$ref` are laid over its target.
   *
   * @param {any} schema
   * @param {string} pointer
   * @returns {{schema: Schema, pointer: string}}
   */
  resolve(schema, pointer) {
    let beside = {};
    for (let hops = 0; typeof schema?.$ref === "string" && hops < MAX_HOPS; hops++) {
      const { $ref, ...rest } = schema;
      beside = { ...rest, ...beside };
      pointer = this.#target($ref);
      schema = this.lookUp(pointer);
    }
    return { schema: overlay(schema, beside), pointer };
  }

  /** @param {string} ref @returns {string} the JSON Pointer that a reference inside this document means */
  #target(ref) {
    const fragment = decodeURIComponent(ref.slice(ref.indexOf("#") + 1));
    if (fragment === "" || fragment.startsWith("/")) return fragment;
    return findAnchor(this.schema, fragment, "") ?? "/$defs/" + fragment;
  }
}

export class Field {
  /** @type {Map<string, Field>} */
  #as = new Map();

  /**
   * @param {SchemaTree} tree
   * @param {unknown} schema
   * @param {string} pointer
   * @param {string} place
   * @param {string[]} trail
   */
  constructor(tree, schema, pointer, place, trail) {
    const resolved = tree.resolve(schema, pointer);
    this.tree = tree;
    this.schema = resolved.schema;
    this.pointer = resolved.pointer;
    this.place = place;
    this.collapsed = trail.includes(this.pointer);
    this.trail = [...trail, this.pointer];
    this.nullable = isNullable(this.schema);
    /** @type {Kind} */
    this.kind = kindOf(this.schema);
  }

  /** @returns {string | undefined} */
  get title() {
    return this.schema.title;
  }

  /** @returns {string | undefined} */
  get description() {
    return this.schema.description;
  }

  /** @returns {number} the longest text that is legal here, in characters */
  get maxLength() {
    return this.schema.maxLength ?? Infinity;
  }

  /** @returns {unknown[]} every value of an enum or const */
  get options() {
    return "const" in this.schema ? [this.schema.const] : (this.schema.enum ?? []);
  }

  /** @returns {Field[]} the arms of a union, `null` left out where it is only a mark */
  get arms() {
    const [keyword, arms] = armsOf(this.schema);
    const fields = arms.map((arm, index) => this.#below(arm, `${this.pointer}/${keyword}/${index}`, this.place));
    return this.nullable ? fields.filter((field) => field.kind !== "null") : fields;
  }

  /** @returns {Member[]} the members of an object that are known beforehand, in generation order */
  get members() {
    const required = new Set(this.schema.required ?? []);
    const keys = Object.keys(this.schema.properties ?? {});
    const rank = (/** @type {string} */ key) => this.tree.rank.get(join(this.place, key)) ?? Infinity;
    keys.sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b)));
    return keys.map((key) => ({ key, required: required.has(key), field: this.member(key) }));
  }

  /** @param {string} key @returns {Field} */
  member(key) {
    const place = join(this.place, key);
    const { properties, additionalProperties } = this.schema;
    if (properties && Object.hasOwn(properties, key)) {
      return this.#below(properties[key], join(`${this.pointer}/properties`, key), place);
    }
    return this.#below(additionalProperties ?? true, `${this.pointer}/additionalProperties`, place);
  }

  /** @param {number} index @returns {Field} */
  item(index) {
    const { prefixItems, items } = this.schema;
    if (prefixItems && index < prefixItems.length) {
      return this.#below(prefixItems[index], `${this.pointer}/prefixItems/${index}`, `${this.place}/${index}`);
    }
    return this.#below(items ?? true, `${this.pointer}/items`, `${this.place}/*`);
  }

  /**
   * This field once the value's type is known: itself, the arms that can have the type, or a plain field of that type.
   *
   * @param {Kind} type
   * @returns {Field}
   */
  as(type) {
    if (this.kind === type || this.kind === "enum" || (type === "number" && this.kind === "integer")) return this;
    if (type === "null" && this.nullable && this.kind !== "union") return this;
    let field = this.#as.get(type);
    if (!field) this.#as.set(type, (field = this.#narrowed(type)));
    return field;
  }

  /** @param {Kind} type @returns {Field} */
  #narrowed(type) {
    const arms = this.#leaves(new Set()).filter((arm) => holds(arm, type));
    if (arms.length === 1) return arms[0].as(type);
    if (arms.length > 1 && SCALARS.has(type)) return common(arms);
    // Several containers could still be meant: a bare one, whose members come from all of them.
    return new Undecided(this, type, arms);
  }

  /** The arms, with those of unions inside unions, each union once. @param {Set<string>} seen @returns {Field[]} */
  #leaves(seen) {
    if (seen.has(this.pointer)) return [];
    seen.add(this.pointer);
    return this.arms.flatMap((arm) => (arm.kind === "union" ? arm.#leaves(seen) : [arm]));
  }

  /** @param {unknown} schema @param {string} pointer @param {string} place @returns {Field} */
  #below(schema, pointer, place) {
    return this.tree.field(schema, pointer, place, this.trail);
  }
}

/** A value whose type is known while its schema is not: members and items are what the possible arms have in common. */
class Undecided extends Field {
  /** @param {Field} whole @param {Kind} kind @param {Field[]} candidates */
  constructor(whole, kind, candidates) {
    const { title, description } = whole.schema;
    super(whole.tree, { title, description, type: kind }, whole.pointer, whole.place, []);
    this.trail = whole.trail;
    this.candidates = candidates;
  }

  /** @override @param {string} key */
  member(key) {
    return this.candidates.length ? common(this.candidates.map((arm) => arm.member(key))) : super.member(key);
  }

  /** @override @param {number} index */
  item(index) {
    return this.candidates.length ? common(this.candidates.map((arm) => arm.item(index))) : super.item(index);
  }
}

/** @param {Field[]} fields fields that one place may have @returns {Field} what can be drawn for all of them */
function common(fields) {
  const [first] = fields;
  if (fields.length === 1) return first;
  if (fields.length && fields.every((field) => field.kind === "enum")) {
    const { title, description } = first.schema;
    const options = [...new Set(fields.flatMap((field) => field.options))];
    return new Field(first.tree, { title, description, enum: options }, first.pointer, first.place, []);
  }
  const same = fields.length > 0 && fields.every((field) => field.kind === first.kind && SCALARS.has(field.kind));
  return same ? first : new Field(first?.tree ?? new SchemaTree(true), true, "", first?.place ?? "", []);
}

/** @param {Field} field @param {Kind} type @returns {boolean} whether a value of the type may stand here */
function holds(field, type) {
  if (field.kind === "enum") return field.options.some((option) => (option === null ? "null" : typeof option) === type);
  return field.kind === type || field.kind === "any" || (type === "number" && field.kind === "integer");
}
