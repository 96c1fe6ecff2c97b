/**
 * The pieces of the form: a leaf for a scalar, a group for an object or array, a neutral block for an undecided union.
 * A widget shows what it is told (`show`), as often as it is told; it never moves the focus.
 */

import { controlFor } from "./controls.js";

/** @typedef {import("./schema.js").Field} Field */
/** @typedef {import("./fold.js").Node} Node */
/** @typedef {"pending" | "next" | "streaming" | "complete" | "absent" | "interrupted"} State */
/** @typedef {Leaf | Group | Neutral} Widget */
/** @typedef {{path: string, field: Field, label: string, context?: string, required: boolean}} Place */

/** What a state is called beside a field; a state without a word speaks for itself. */
const STATE_WORDS = { pending: "", next: "next", streaming: "writing", complete: "", absent: "not given", interrupted: "cut off" };
/** A group says less: its fields tell where the writing is. */
const GROUP_WORDS = { ...STATE_WORDS, next: "", streaming: "" };
const LONG_TEXT = 60;
const MEDIUM_TEXT = 30;
const SHORT_TEXT = 14;
const BRIEF_LABEL = 10;

let lastId = 0;

/** One scalar: a label, a control, a word on its state. */
export class Leaf {
  /** @param {Place} place @param {import("./controls.js").OnEdit} onEdit */
  constructor(place, onEdit) {
    this.place = place;
    this.field = place.field;
    const id = `field-${++lastId}`;
    this.element = make("div", `field ${widthOf(place)}`);
    this.state = stateWord(id);
    this.control = controlFor(this.field, id, onEdit);
    const well = make("div", "well");
    well.style.setProperty("--size", sizeOf(this.field));
    well.append(this.control.element);
    this.element.append(this.#head(id), well, ...descriptions(this.field, id));
    this.control.element.setAttribute("aria-describedby", described(this.field, id));
    present(this, "pending");
  }

  /** @param {State} state @param {Node | undefined} node */
  show(state, node) {
    if (node && !(node.kind === "object" || node.kind === "array")) this.#fill(node);
    this.control.lock(state !== "complete" || this.field.kind === "null");
    present(this, state);
  }

  /** @param {Extract<Node, {kind: "string" | "scalar"}>} node */
  #fill(node) {
    this.control.show(node.kind === "string" ? { text: node.text } : { value: node.value, raw: node.raw });
  }

  /** @param {string} id */
  #head(id) {
    const head = make("div", "head");
    const label = make(this.control.labelable ? "label" : "span", "label");
    label.id = `${id}-label`;
    if (this.control.labelable) label.setAttribute("for", id);
    else this.control.element.setAttribute("aria-labelledby", label.id);
    label.append(...named(this.place));
    head.append(label, ...marks(this.place), this.state);
    return head;
  }}

/** An object or an array: a fieldset whose members or rows are widgets again. */
export class Group {
  /** @param {Place} place */
  constructor(place) {
    this.place = place;
    this.field = place.field;
    /** @type {Map<string, Widget>} */
    this.children = new Map();
    /** @type {Field | null} whose members are on the page; recursion waits until the value opens */
    this.drawn = null;
    const id = `field-${++lastId}`;
    this.element = make("fieldset", `group ${place.field.kind}`);
    this.body = make("div", "body");
    this.state = stateWord(id);
    const legend = make("legend", "head");
    const label = make("span", "label");
    label.id = `${id}-label`;
    label.append(...named(place));
    legend.append(label, ...marks(place), this.state);
    this.element.append(legend, ...descriptions(this.field, id), this.body);
    // The label alone is the name: marks and states would change it under the reader.
    this.element.setAttribute("aria-labelledby", label.id);
    this.element.setAttribute("aria-describedby", described(this.field, id));
    present(this, "pending");
  }

  /** @param {State} state @param {Node | undefined} node */
  show(state, node) {
    if (state === "streaming") this.element.setAttribute("aria-busy", "true");
    else this.element.removeAttribute("aria-busy");
    present(this, state);
    if (node?.kind === "array") this.#count(node.items.length, state);
  }

  /** @param {string} token @param {Widget} widget @param {Element | null} [before] the end, if not given */
  put(token, widget, before = null) {
    this.children.set(token, widget);
    this.body.insertBefore(widget.element, before);
  }

  /** @param {string} token @param {Widget} widget */
  replace(token, widget) {
    this.children.get(token)?.element.replaceWith(widget.element);
    this.children.set(token, widget);
  }

  /** @param {number} rows @param {State} state */
  #count(rows, state) {
    if (state === "complete") this.state.textContent = rows === 0 ? "empty" : rows === 1 ? "1 entry" : `${rows} entries`;
  }
}

/** A union that is not decided, or a value of which nothing is known. */
export class Neutral {
  /** @param {Place} place */
  constructor(place) {
    this.place = place;
    this.field = place.field;
    this.element = make("div", "field neutral wide");
    this.state = stateWord(`field-${++lastId}`);
    const head = make("div", "head");
    const label = make("span", "label");
    label.append(...named(place));
    head.append(label, ...marks(place), this.state);
    const well = make("div", "well");
    const arms = place.field.arms.map((arm) => arm.title ?? arm.kind);
    well.append(make("span", "hint", arms.length ? alternatives(arms) : "any value"));
    this.element.append(head, well);
    present(this, "pending");
  }

  /** @param {State} state */
  show(state) {
    present(this, state);
  }
}

/** @param {Place} place @param {import("./controls.js").OnEdit} onEdit @returns {Widget} */
export function widgetFor(place, onEdit) {
  const { kind } = place.field;
  if (kind === "object" || kind === "array") return new Group(place);
  return kind === "union" || kind === "any" ? new Neutral(place) : new Leaf(place, onEdit);
}

/** @param {string} key @returns {string} a member's name as words: `unit_price` is "Unit price" */
export function humanise(key) {
  const words = key.replace(/([a-z\d])([A-Z])/g, "$1 $2").replace(/[_-]+/g, " ").trim();
  return words === "" ? key : words[0].toUpperCase() + words.slice(1).toLowerCase();
}

/** @param {Widget} widget @param {State} state */
function present(widget, state) {
  widget.element.dataset.state = state;
  widget.state.textContent = (widget instanceof Group ? GROUP_WORDS : STATE_WORDS)[state];
}

/** @param {string} id */
function stateWord(id) {
  const word = make("span", "state");
  word.id = `${id}-state`;
  return word;
}

/** @param {Place} place @returns {(Element | Text)[]} the label, with the name of the list for those who cannot see it */
function named({ label, context }) {
  return context ? [make("span", "unseen", `${context} `), document.createTextNode(label)] : [document.createTextNode(label)];
}

/** @param {Place} place */
function marks({ field, required }) {
  const words = [...(required ? [] : ["optional"]), ...(field.nullable ? ["may be none"] : [])];
  return words.map((word) => make("span", "mark", word));
}

/** @param {Field} field @param {string} id */
function descriptions(field, id) {
  if (!field.description) return [];
  const about = make("p", "about", field.description);
  about.id = `${id}-about`;
  return [about];
}

/** @param {Field} field @param {string} id @returns {string} the ids of what describes the field */
function described(field, id) {
  return field.description ? `${id}-state ${id}-about` : `${id}-state`;
}

/** @param {string[]} arms */
function alternatives(arms) {
  const names = [...new Set(arms)].map((arm) => arm.toLowerCase());
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names[names.length - 1]}`;
}

/** @param {Place} place @returns {string} the class that says how much of a line the field takes */
function widthOf({ field, label, required }) {
  const bare = required && !field.description && label.length <= BRIEF_LABEL;
  if (field.kind === "integer") return bare ? "brief" : "small";
  if (field.kind === "number" || field.kind === "boolean") return "small";
  if (field.kind === "enum") return field.options.join("").length <= SHORT_TEXT ? "short" : "medium";
  if (field.kind !== "string") return "medium";
  if (field.maxLength <= SHORT_TEXT) return "small";
  if (field.maxLength <= MEDIUM_TEXT) return "short";
  return field.maxLength <= LONG_TEXT ? "medium" : "wide";
}

/** @param {Field} field @returns {string} how long a value is likely to be, as a CSS length */
function sizeOf(field) {
  if (field.kind === "string") return `${Math.min(Math.max(field.maxLength * 0.7, 4), 48)}ch`;
  return field.kind === "integer" ? "5ch" : "8ch";
}

/** @param {string} tag @param {string} className @param {string} [text] */
function make(tag, className, text = "") {
  const element = document.createElement(tag);
  element.className = className;
  if (text) element.textContent = text;
  return element;
}
