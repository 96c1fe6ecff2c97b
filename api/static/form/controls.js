/**
 * The input elements of scalar values: text, number, choice. Each shows a value, can be locked, and reports an edit.
 * Knows nothing of streams; a locked control never reports.
 */

/** @typedef {{value: unknown, raw: string | null}} Shown what a fold's string or scalar holds; `raw`: a number's own spelling */
/** @typedef {(value: unknown, raw: string | null) => void} OnEdit called when the user has finished, not with each key */
/** @typedef {{say: import("./words.js").Say, onEdit: OnEdit, onFault: (why: string) => void}} Told an empty fault is none */
/**
 * @typedef {Object} Control
 * @property {HTMLElement} element
 * @property {boolean} labelable whether a `label for` can name the element
 * @property {(shown: Shown) => void} show
 * @property {(locked: boolean) => void} lock
 */

const FITS_ITSELF = CSS.supports("field-sizing", "content");
const MAX_PILLS = 6;
const MAX_PILL_CHARS = 44;
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const JSON_INTEGER = /^-?(0|[1-9]\d*)$/;

/**
 * @param {import("./schema.js").Field} field
 * @param {string} id
 * @param {Told} told
 * @param {boolean} narrow whether a choice must fit a cell of a table
 * @returns {Control}
 */
export function controlFor(field, id, told, narrow) {
  if (field.kind === "enum") return choice(field.options, id, told, narrow);
  if (field.kind === "boolean") return choice([true, false], id, told, narrow);
  if (field.kind === "integer" || field.kind === "number") return number(field.kind, id, told);
  return text(id, told);
}

/** @param {string} id @param {Told} told @returns {Control} */
function text(id, { say, onEdit }) {
  const element = document.createElement("textarea");
  Object.assign(element, { id, rows: 1, readOnly: true, spellcheck: false, autocomplete: "off" });
  element.addEventListener("change", () => onEdit(element.value, null));
  return typed(element, say);
}

/** @param {"integer" | "number"} kind @param {string} id @param {Told} told @returns {Control} */
function number(kind, id, { say, onEdit, onFault }) {
  const element = document.createElement("input");
  Object.assign(element, { id, type: "text", inputMode: "decimal", readOnly: true, autocomplete: "off" });
  const isLegal = () => (kind === "integer" ? JSON_INTEGER : JSON_NUMBER).test(element.value);
  const needed = kind === "integer" ? "needsInteger" : "needsNumber";
  element.addEventListener("input", () => onFault(isLegal() ? "" : say(needed)));
  element.addEventListener("change", () => isLegal() && onEdit(Number(element.value), element.value));
  return typed(element, say);
}

/**
 * Null has no text: it shows as an empty box that says so.
 *
 * @param {HTMLTextAreaElement | HTMLInputElement} element
 * @param {import("./words.js").Say} say
 * @returns {Control}
 */
function typed(element, say) {
  return {
    element,
    labelable: true,
    show({ value, raw }) {
      const shown = value === null ? "" : (raw ?? String(value));
      element.placeholder = value === null ? say("none") : "";
      if (element.value !== shown) element.value = shown;
      if (!FITS_ITSELF && element instanceof HTMLTextAreaElement) fit(element);
    },
    lock: (locked) => (element.readOnly = locked),
  };
}

/** What `field-sizing: content` does, where a browser has not learnt it. @param {HTMLTextAreaElement} element */
function fit(element) {
  element.style.height = "auto";
  element.style.height = `${element.scrollHeight + 2}px`;
}

/** @param {unknown[]} options @param {string} id @param {Told} told @param {boolean} narrow @returns {Control} */
function choice(options, id, { say, onEdit }, narrow) {
  const words = options.map((option) => wordFor(option, say));
  const short = !narrow && options.length <= MAX_PILLS && words.join("").length <= MAX_PILL_CHARS;
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
    show: ({ value }) => inputs.forEach((input, index) => (input.checked = options[index] === value)),
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
    show: ({ value }) => (element.value = String(options.indexOf(value))),
    lock: (locked) => (element.disabled = locked),
  };
}

/** @param {unknown} value @param {import("./words.js").Say} say @returns {string} a scalar as a person would read it */
function wordFor(value, say) {
  if (typeof value === "boolean") return say(value ? "yes" : "no");
  return value === null ? say("none") : String(value);
}
