/** How much room a field is likely to need, and which arrays are tables. Knows schemas, and nothing of elements. */

import { SCALARS } from "./keywords.js";

/** @typedef {import("./schema.js").Field} Field */

const LONG_TEXT = 60;
const MEDIUM_TEXT = 30;
const SHORT_TEXT = 14;
const BRIEF_LABEL = 10;
const MAX_COLUMNS = 5;

/** @param {string} key @returns {string} a member's name as words: `unit_price` is "Unit price" */
export function humanise(key) {
  const words = key.replace(/([a-z\d])([A-Z])/g, "$1 $2").replace(/[_-]+/g, " ").trim();
  return words === "" ? key : words[0].toUpperCase() + words.slice(1).toLowerCase();
}

/** @param {{field: Field, label: string, required: boolean}} place @returns {string} the class that says how much of a line it takes */
export function widthOf({ field, label, required }) {
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
export function sizeOf(field) {
  if (field.kind === "string") return `${Math.min(Math.max(field.maxLength * 0.7, 4), 48)}ch`;
  return field.kind === "integer" ? "5ch" : "8ch";
}

/** @param {Field} field @returns {string} the share of a table's width */
export function columnWidth(field) {
  if (field.kind !== "string") return field.kind === "integer" ? "minmax(4.5rem, 1fr)" : "minmax(6rem, 1.5fr)";
  return field.maxLength <= SHORT_TEXT ? "minmax(5rem, 1.5fr)" : field.maxLength <= MEDIUM_TEXT ? "minmax(7rem, 3fr)" : "minmax(9rem, 4fr)";
}

/** @param {Field} field @returns {import("./schema.js").Member[] | null} the columns of an array that is a table */
export function columnsOf(field) {
  if (field.kind !== "array" || field.schema.prefixItems) return null;
  const item = field.item(0);
  if (item.kind !== "object" || item.collapsed) return null;
  const members = item.members;
  const flat = members.every((member) => SCALARS.has(member.field.kind) || member.field.kind === "enum");
  return flat && members.length > 0 && members.length <= MAX_COLUMNS ? members : null;
}
