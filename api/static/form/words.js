/** All that the form itself says, in English; a page may replace any of it (`words` of the element). Knows no elements. */

/** @typedef {keyof typeof WORDS} Key */
/** @typedef {(key: Key, detail?: string) => string} Say */

export const WORDS = {
  // The status line
  idle: "Ready.",
  connecting: "Connecting…",
  streaming: (/** @type {string} */ model) => `${model} is writing.`,
  reconnecting: "The connection broke. Connecting again…",
  complete: "Complete. The document is valid.",
  invalid: "Complete, but the document is not valid.",
  closed: "Complete and valid: it was brought to a close at the token limit.",
  length: "The token limit was reached.",
  cancelled: "Cancelled.",
  disconnected: "The connection was lost.",
  failed: (/** @type {string} */ why) => why,
  part: (/** @type {string} */ label) => `${label} complete.`,
  edited: (/** @type {string} */ label) => `${label} corrected.`,
  refused: (/** @type {string} */ label) => `${label} was not corrected.`,
  kept: "Completed fields are kept; what was cut off is marked.",
  resume: "Resume",
  retry: "Try again",
  // Beside a field
  next: "next",
  writing: "writing",
  absent: "not given",
  interrupted: "cut off",
  optional: "optional",
  nullable: "may be none",
  // Values and what is wrong with them
  none: "none",
  yes: "yes",
  no: "no",
  needsInteger: "A whole number is needed.",
  needsNumber: "A number is needed.",
  // Lists and unions
  document: "Document",
  entry: "Entry",
  entries: (/** @type {string} */ count) => (count === "0" ? "empty" : count === "1" ? "1 entry" : `${count} entries`),
  any: "any value",
  or: "or",
};

/** @param {() => Partial<Record<Key, string | ((detail: string) => string)>>} own what the page says instead @returns {Say} */
export function saying(own) {
  return (key, detail = "") => {
    const word = own()[key] ?? WORDS[key];
    return typeof word === "function" ? word(detail) : word;
  };
}
