/**
 * The pieces of the form: a leaf for a scalar, a group for an object, an array or a row, a neutral block for an undecided union.
 * A widget shows what it is told (`show`), as often as it is told; it never moves the focus.
 */

import { controlFor } from "./controls.js";
import { columnWidth, columnsOf, humanise, sizeOf, widthOf } from "./shape.js";

/** @typedef {import("./schema.js").Field} Field */
/** @typedef {{kind: string, value: unknown, raw: string | null, children: ReadonlyMap<string, unknown>}} Node of a fold */
/** @typedef {"pending" | "next" | "streaming" | "complete" | "absent" | "interrupted"} State */
/** @typedef {Leaf | Group | Neutral} Widget */
/** @typedef {import("./words.js").Key} Key */
/** @typedef {import("./words.js").Say} Say */
/** @typedef {{path: string, field: Field, label: string, context?: string, required: boolean, row?: boolean, cell?: boolean}} Place */

/** What a state is called beside a field; a state without a word speaks for itself. @type {Partial<Record<State, Key>>} */
const STATE_WORDS = { next: "next", streaming: "writing", absent: "absent", interrupted: "interrupted" };
/** A group says less: its fields tell where the writing is. @type {Partial<Record<State, Key>>} */
const GROUP_WORDS = { absent: "absent", interrupted: "interrupted" };

let lastId = 0;

/** One scalar: a label, a control, a word on its state, and what was wrong with an edit. */
export class Leaf {
  /** @param {Place} place @param {Say} say @param {import("./controls.js").OnEdit} onEdit */
  constructor(place, say, onEdit) {
    this.say = say;
    this.place = place;
    this.field = place.field;
    const id = `field-${++lastId}`;
    this.element = make("div", `field ${place.cell ? "cell" : widthOf(place)}`);
    this.element.setAttribute("part", "field");
    this.state = stateWord(id);
    const told = { say, onEdit, onFault: (/** @type {string} */ why) => this.blame(why) };
    this.control = controlFor(this.field, id, told, place.cell ?? false);
    this.fault = make("p", "fault");
    this.fault.id = `${id}-fault`;
    this.fault.hidden = true;
    const well = make("div", "well");
    well.style.setProperty("--size", sizeOf(this.field));
    well.append(this.control.element);
    this.element.append(this.#head(id), well, ...descriptions(this.field, id), this.fault);
    const about = this.field.description ? `${id}-about ` : "";
    this.control.element.setAttribute("aria-describedby", `${id}-state ${about}${this.fault.id}`);
    present(this, "pending");
  }

  /** @param {State} state @param {Node | undefined} node */
  show(state, node) {
    if (node && node.kind !== "object" && node.kind !== "array") this.control.show(node);
    this.control.lock(state !== "complete" || this.field.kind === "null");
    this.blame("");
    present(this, state);
  }

  /** Say what is wrong with what the user typed. @param {string} why nothing, if it is empty */
  blame(why) {
    this.fault.textContent = why;
    this.fault.hidden = why === "";
    if (why) this.control.element.setAttribute("aria-invalid", "true");
    else this.control.element.removeAttribute("aria-invalid");
  }

  /** @param {string} id */
  #head(id) {
    const head = make("div", "head");
    const label = make(this.control.labelable ? "label" : "span", "label");
    label.id = `${id}-label`;
    if (this.control.labelable) label.setAttribute("for", id);
    else this.control.element.setAttribute("aria-labelledby", label.id);
    label.append(...named(this.place));
    head.append(label, ...marks(this.place, this.say), this.state);
    return head;
  }
}

/** An object, an array or a row: a group whose members or rows are widgets again. An array of flat objects is a table. */
export class Group {
  /** @param {Place} place @param {Say} say */
  constructor(place, say) {
    this.say = say;
    this.place = place;
    this.field = place.field;
    /** @type {Map<string, Widget>} */
    this.children = new Map();
    /** @type {Field | null} whose members are on the page; recursion waits until the value opens */
    this.drawn = null;
    const id = `field-${++lastId}`;
    // A fieldset cannot lay its members into the columns of a table.
    this.element = place.row ? make("div", "group row") : make("fieldset", `group ${place.field.kind}`);
    this.element.setAttribute("part", place.row ? "row" : "group");
    if (place.row) this.element.setAttribute("role", "group");
    this.body = make("div", "body");
    this.state = stateWord(id);
    const head = make(place.row ? "div" : "legend", "head");
    const label = make("span", "label");
    label.id = `${id}-label`;
    label.append(...named(place));
    head.append(label, ...marks(place, say), this.state);
    this.element.append(head, ...descriptions(this.field, id), this.body);
    // The label alone is the name: marks and states would change it under the reader.
    this.element.setAttribute("aria-labelledby", label.id);
    this.element.setAttribute("aria-describedby", this.field.description ? `${id}-state ${id}-about` : `${id}-state`);
    /** @type {import("./schema.js").Member[] | null} */
    this.columns = columnsOf(this.field);
    if (this.columns) this.#headColumns(this.columns);
    present(this, "pending");
  }

  /** @param {State} state @param {Node | undefined} node */
  show(state, node) {
    if (state === "streaming") this.element.setAttribute("aria-busy", "true");
    else this.element.removeAttribute("aria-busy");
    present(this, state);
    if (node?.kind === "array") this.#count(node.children.size, state);
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

  /** The names of the columns, for the eye: each control has its own label. @param {import("./schema.js").Member[]} columns */
  #headColumns(columns) {
    this.element.classList.add("table");
    this.body.style.setProperty("--columns", columns.map(({ field }) => columnWidth(field)).join(" "));
    const names = columns.map(({ key, field }) => make("span", "", field.title ?? humanise(key)));
    const head = make("div", "columns");
    head.setAttribute("aria-hidden", "true");
    head.append(make("span", ""), ...names);
    this.body.append(head);
  }

  /** @param {number} rows @param {State} state */
  #count(rows, state) {
    if (state === "complete") this.state.textContent = this.say("entries", String(rows));
  }
}

/** A union that is not decided, or a value of which nothing is known. */
export class Neutral {
  /** @param {Place} place @param {Say} say */
  constructor(place, say) {
    this.say = say;
    this.place = place;
    this.field = place.field;
    this.element = make("div", "field neutral wide");
    this.element.setAttribute("part", "field");
    this.state = stateWord(`field-${++lastId}`);
    const head = make("div", "head");
    const label = make("span", "label");
    label.append(...named(place));
    head.append(label, ...marks(place, say), this.state);
    const well = make("div", "well");
    const arms = place.field.arms.map((arm) => arm.title ?? arm.kind);
    well.append(make("span", "hint", arms.length ? alternatives(arms, say("or")) : say("any")));
    this.element.append(head, well);
    present(this, "pending");
  }

  /** @param {State} state */
  show(state) {
    present(this, state);
  }
}

/** @param {Place} place @param {Say} say @param {import("./controls.js").OnEdit} onEdit @returns {Widget} */
export function widgetFor(place, say, onEdit) {
  const { kind } = place.field;
  if (kind === "object" || kind === "array") return new Group(place, say);
  return kind === "union" || kind === "any" ? new Neutral(place, say) : new Leaf(place, say, onEdit);
}

/** @param {string} tag @param {string} className @param {string} [text] @returns {HTMLElement} */
export function make(tag, className, text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

/** @param {Widget} widget @param {State} state */
function present(widget, state) {
  widget.element.dataset.state = state;
  const word = (widget instanceof Group ? GROUP_WORDS : STATE_WORDS)[state];
  widget.state.textContent = word ? widget.say(word) : "";
}

/** @param {string} id */
function stateWord(id) {
  const word = make("span", "state");
  word.id = `${id}-state`;
  return word;
}

/** @param {Place} place @returns {(Element | Text)[]} the label, with the name of the list for those who cannot see it */
function named({ label, context, row }) {
  const before = context ? [make("span", "unseen", `${context} `)] : [];
  if (!row) return [...before, document.createTextNode(label)];
  // In a table the number is enough for the eye.
  const number = label.lastIndexOf(" ") + 1;
  return [...before, make("span", "word", label.slice(0, number)), document.createTextNode(label.slice(number))];
}

/** @param {Place} place @param {Say} say */
function marks({ field, required }, say) {
  const words = [...(required ? [] : [say("optional")]), ...(field.nullable ? [say("nullable")] : [])];
  return words.map((word) => make("span", "mark", word));
}

/** @param {Field} field @param {string} id */
function descriptions(field, id) {
  if (!field.description) return [];
  const about = make("p", "about", field.description);
  about.id = `${id}-about`;
  return [about];
}

/** @param {string[]} arms @param {string} or */
function alternatives(arms, or) {
  const names = [...new Set(arms)].map((arm) => arm.toLowerCase());
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} ${or} ${names[names.length - 1]}`;
}
