/** What the keywords of one JSON Schema mean for drawing it: its kind, its arms, whether it may be null. Follows no reference. */

import { joinPointer as join } from "../constrained.js";

/** @typedef {"object" | "array" | "string" | "integer" | "number" | "boolean" | "null" | "enum" | "union" | "any"} Kind */
/** @typedef {Record<string, any>} Schema */

export const SCALARS = new Set(["string", "integer", "number", "boolean", "null"]);
const ANNOTATIONS = ["title", "description", "default", "examples"];

/** @param {any} schema @param {Schema} beside @returns {Schema} */
export function overlay(schema, beside) {
  if (schema === null || typeof schema !== "object" || Array.isArray(schema)) return beside;
  const merged = { ...schema, ...beside };
  for (const part of schema.allOf ?? []) fill(merged, part);
  return merged;
}

/** Lay under `merged` what one part of an `allOf` says. @param {Schema} merged @param {any} part */
function fill(merged, part) {
  if (part === null || typeof part !== "object") return;
  const properties = { ...part.properties, ...merged.properties };
  const required = [...(merged.required ?? []), ...(part.required ?? [])];
  Object.assign(merged, { ...part, ...merged });
  if (Object.keys(properties).length) merged.properties = properties;
  if (required.length) merged.required = required;
}

/** @param {Schema} schema @returns {string[]} */
function typesOf(schema) {
  return schema.type === undefined ? [] : [schema.type].flat();
}

/** @param {Schema} schema @returns {[string, any[]]} the keyword and arms of a union, or no arms */
export function armsOf(schema) {
  const keyword = schema.anyOf ? "anyOf" : "oneOf";
  const types = typesOf(schema).filter((type) => type !== "null");
  if (schema[keyword] && !schema.properties && !schema.items) return [keyword, schema[keyword]];
  if (types.length < 2) return [keyword, []];
  return ["type", typesOf(schema).map((type) => ({ ...unannotated(schema), type }))];
}

/** @param {Schema} schema @returns {boolean} whether null is one of the possible values beside others */
export function isNullable(schema) {
  const types = typesOf(schema);
  if (types.length > 1 && types.includes("null")) return true;
  const [, arms] = armsOf(schema);
  return arms.length > 1 && arms.some((arm) => arm?.type === "null" || arm?.const === null);
}

/** @param {Schema} schema @returns {Kind} */
export function kindOf(schema) {
  const options = "const" in schema ? [schema.const] : schema.enum;
  if (options) return options.every(isScalar) ? "enum" : "any";
  const [, arms] = armsOf(schema);
  if (arms.length > 0) return "union";
  const [type] = typesOf(schema).filter((name, _, all) => name !== "null" || all.length === 1);
  if (type) return /** @type {Kind} */ (type);
  if (schema.properties) return "object";
  return schema.items || schema.prefixItems ? "array" : "any";
}

/** @param {unknown} value */
function isScalar(value) {
  return value === null || typeof value !== "object";
}

/** @param {Schema} schema @returns {Schema} */
export function annotationsOf(schema) {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => ANNOTATIONS.includes(name)));
}

/** @param {Schema} schema @returns {Schema} */
function unannotated(schema) {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !ANNOTATIONS.includes(name)));
}

/** @param {any} schema @param {string} anchor @param {string} pointer @returns {string | undefined} */
export function findAnchor(schema, anchor, pointer) {
  if (schema === null || typeof schema !== "object") return undefined;
  if (schema.$anchor === anchor || schema.$dynamicAnchor === anchor) return pointer;
  for (const [key, below] of Object.entries(schema)) {
    const found = findAnchor(below, anchor, join(pointer, key));
    if (found !== undefined) return found;
  }
  return undefined;
}
