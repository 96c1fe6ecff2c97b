/**
 * The input elements of scalar values: text, number, choice. Each shows a value, can be locked, and reports an edit.
 * Knows nothing of streams; a locked control never reports.
 */

/** @typedef {{text: string} | {value: unknown, raw: string | null}} Shown what a fold's string or scalar node holds */
/** @typedef {(value: unknown, raw: string | null) => void} OnEdit */
/**
 * @typedef {Object} Control
 * @property {HTMLElement} element
 * @property {boolean} labelable whether a `label for` can name the element
 * @property {(shown: Shown) => void} show
 * @property {(locked: boolean) => void} lock
 */

const MAX_PILLS = 6;
const MAX_PILL_CHARS = 44;
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const JSON_INTEGER = /^-?(0|[1-9]\d*)$/;

/**
 * @param {import("./schema.js").Field} field
 * @param {string} id
 * @param {OnEdit} onEdit
 * @returns {Control}
 */
export function controlFor(field, id, onEdit) {
  if (field.kind === "enum") return choice(field.options, id, onEdit);
  if (field.kind === "boolean") return choice([true, false], id, onEdit);
  if (field.kind === "integer" || field.kind === "number") return number(field.kind, id, onEdit);
  return text(id, onEdit);
}

/** @param {string} id @param {OnEdit} onEdit @returns {Control} */
function text(id, onEdit) {
  const element = document.createElement("textarea");
  Object.assign(element, { id, rows: 1, readOnly: true, spellcheck: false, autocomplete: "off" });
  element.addEventListener("input", () => onEdit(element.value, null));
  return {
    element,
    labelable: true,
    show: writer(element),
    lock: (locked) => (element.readOnly = locked),
  };
}

/** @param {"integer" | "number"} kind @param {string} id @param {OnEdit} onEdit @returns {Control} */
function number(kind, id, onEdit) {
  const element = document.createElement("input");
  Object.assign(element, { id, type: "text", inputMode: "decimal", readOnly: true, autocomplete: "off" });
  element.addEventListener("input", () => {
    const legal = (kind === "integer" ? JSON_INTEGER : JSON_NUMBER).test(element.value);
    element.setAttribute("aria-invalid", String(!legal));
    if (legal) onEdit(Number(element.value), element.value);
  });
  return {
    element,
    labelable: true,
    show: writer(element),
    lock: (locked) => (element.readOnly = locked),
  };
}

/**
 * Null has no text: it shows as an empty box that says so.
 *
 * @param {HTMLTextAreaElement | HTMLInputElement} element
 * @returns {(shown: Shown) => void}
 */
function writer(element) {
  return (shown) => {
    const value = valueOf(shown);
    element.placeholder = value === null ? wordFor(null) : "";
    element.value = value === null ? "" : "raw" in shown && shown.raw !== null ? shown.raw : String(value);
  };
}

/** @param {unknown[]} options @param {string} id @param {OnEdit} onEdit @returns {Control} */
function choice(options, id, onEdit) {
  const words = options.map(wordFor);
  const short = options.length <= MAX_PILLS && words.join("").length <= MAX_PILL_CHARS;
  return short ? pills(options, words, id, onEdit) : select(options, words, id, onEdit);
}

/** @param {unknown[]} options @param {string[]} words @param {string} id @param {OnEdit} onEdit @returns {Control} */
function pills(options, words, id, onEdit) {
  const element = document.createElement("div");
  element.className = "pills";
  element.setAttribute("role", "radiogroup");
  const inputs = words.map((word, index) => {
    const input = document.createElement("input");
    Object.assign(input, { type: "radio", name: id, value: String(index), disabled: true });
    input.addEventListener("change", () => onEdit(options[index], null));
    const label = document.createElement("label");
    const face = document.createElement("span");
    face.textContent = word;
    label.append(input, face);
    element.append(label);
    return input;
  });
  return {
    element,
    labelable: false,
    show: (shown) => inputs.forEach((input, index) => (input.checked = options[index] === valueOf(shown))),
    lock: (locked) => inputs.forEach((input) => (input.disabled = locked)),
  };
}

/** @param {unknown[]} options @param {string[]} words @param {string} id @param {OnEdit} onEdit @returns {Control} */
function select(options, words, id, onEdit) {
  const element = document.createElement("select");
  Object.assign(element, { id, disabled: true });
  element.append(new Option("", "", true, true), ...words.map((word, index) => new Option(word, String(index))));
  element.options[0].hidden = true;
  element.addEventListener("change", () => onEdit(options[Number(element.value)], null));
  return {
    element,
    labelable: true,
    show: (shown) => (element.value = String(options.indexOf(valueOf(shown)))),
    lock: (locked) => (element.disabled = locked),
  };
}

/** @param {Shown} shown */
function valueOf(shown) {
  return "text" in shown ? shown.text : shown.value;
}

/** @param {unknown} value @returns {string} a scalar as a person would read it */
export function wordFor(value) {
  if (value === true) return "yes";
  if (value === false) return "no";
  return value === null ? "none" : String(value);
}
