/** Errors in plain words, and the part of the page where they belong. */

/** @typedef {"schema" | "prompt" | "settings" | "result"} Place */
/** @typedef {{place: Place, title: string, detail: string, param: string | null}} Problem */

/** @type {Record<string, [Place, string]>} */
const BY_CODE = {
  invalid_schema: ["schema", "This is not a usable JSON Schema."],
  unsupported_keyword: ["schema", "The schema uses a keyword that cannot be enforced yet."],
  unsatisfiable_schema: ["schema", "No value can satisfy this schema."],
  unresolvable_reference: ["schema", "A reference in the schema leads nowhere."],
  schema_too_complex: ["schema", "The schema is too complex to compile."],
  context_length_exceeded: ["prompt", "The prompt is too long for the model."],
  model_not_found: ["settings", "There is no such model."],
  invalid_api_key: ["settings", "The service asks for an API key."],
  max_tokens_too_small: ["settings", "The token limit is too small for this schema."],
  overloaded: ["result", "The service is busy. Try again in a moment."],
};
const SETTINGS = new Set(["model", "max_tokens", "temperature", "seed", "top_p", "top_k", "min_p", "whitespace", "property_order"]);

/** @param {import("../constrained.js").ApiError} error @returns {Problem} */
export function problemOf({ message, path, code }) {
  const [place, title] = BY_CODE[code] ?? placeOf(path);
  return { place, title, detail: message, param: code === "invalid_api_key" ? "key" : path };
}

/**
 * @param {string} source the text of the schema
 * @returns {Problem | null} what keeps it from being JSON, if anything does
 */
export function problemOfText(source) {
  if (source.trim() === "") return { place: "schema", title: "A schema is needed.", detail: "Pick a preset or paste one.", param: null };
  try {
    JSON.parse(source);
    return null;
  } catch (error) {
    return { place: "schema", title: "The schema is not valid JSON.", detail: /** @type {Error} */ (error).message, param: null };
  }
}

/** @param {string | null} param @returns {[Place, string]} */
function placeOf(param) {
  const name = (param ?? "").split(/[./]/)[0];
  if (param === "" || param?.startsWith("/") || name === "schema") return ["schema", "The schema was refused."];
  if (name === "prompt" || name === "messages") return ["prompt", "The prompt was refused."];
  if (SETTINGS.has(name)) return ["settings", "A setting was refused."];
  return ["result", "The request was refused."];
}
