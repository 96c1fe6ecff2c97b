/** What the user asks for: schema, prompt, settings. Reads them as a request, and shows a problem beside its cause. */

import { PRESETS } from "./presets.js";
import { problemOfText } from "./problem.js";

/** @typedef {import("./problem.js").Problem} Problem */

/** @template {HTMLElement} T @param {string} id @returns {T} */
const byId = (id) => /** @type {T} */ (document.getElementById(id));

export class Compose {
  schema = /** @type {HTMLTextAreaElement} */ (byId("schema"));
  prompt = /** @type {HTMLTextAreaElement} */ (byId("prompt"));
  maxTokens = /** @type {HTMLInputElement} */ (byId("max_tokens"));
  presets = byId("presets");

  /** @param {(schema: unknown) => void} onSchema called with each schema that is JSON, as it is picked or typed */
  constructor(onSchema) {
    this.onSchema = onSchema;
    this.presets.append(...PRESETS.map((preset, index) => this.#presetButton(preset, index)));
    this.schema.addEventListener("input", () => this.#typed());
    this.pick(0);
  }

  /** @param {number} index */
  pick(index) {
    const { schema, prompt, maxTokens } = PRESETS[index];
    this.schema.value = JSON.stringify(schema, null, 2);
    this.prompt.value = prompt;
    this.maxTokens.value = String(maxTokens);
    this.#mark(index);
    this.clear();
    this.onSchema(schema);
  }

  /** @returns {{body: string, problem: null} | {body: null, problem: Problem}} the request, or why there is none */
  read() {
    const problem = problemOfText(this.schema.value) ?? this.#promptProblem();
    if (problem) return { body: null, problem };
    const rest = JSON.stringify({ messages: [{ role: "user", content: this.prompt.value }], ...settings() });
    // The schema goes as typed: JSON.parse would reorder numeric keys and round long numbers.
    return { body: `{"schema":${this.schema.value},${rest.slice(1)}`, problem: null };
  }

  /** @param {Problem} problem one whose place is here */
  show({ place, title, detail, param }) {
    const box = byId(`${place}-problem`);
    const where = param && place === "schema" && param.startsWith("/") ? [element("code", param)] : [];
    box.replaceChildren(element("strong", title), element("span", detail), ...where);
    box.hidden = false;
    const input = document.getElementById(place === "settings" ? (param ?? "max_tokens") : place);
    input?.setAttribute("aria-invalid", "true");
    input?.setAttribute("aria-describedby", box.id);
  }

  clear() {
    for (const box of document.querySelectorAll(".problem")) /** @type {HTMLElement} */ (box).hidden = true;
    for (const input of document.querySelectorAll("#compose [aria-invalid]")) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
  }

  #typed() {
    this.#mark(-1);
    if (problemOfText(this.schema.value) === null) this.onSchema(JSON.parse(this.schema.value));
  }

  /** @returns {Problem | null} */
  #promptProblem() {
    if (this.prompt.value.trim() !== "") return null;
    return { place: "prompt", title: "A prompt is needed.", detail: "Say what the model should write.", param: null };
  }

  /** @param {import("./presets.js").Preset} preset @param {number} index */
  #presetButton(preset, index) {
    const button = /** @type {HTMLButtonElement} */ (element("button", preset.name));
    button.type = "button";
    button.addEventListener("click", () => this.pick(index));
    return button;
  }

  /** @param {number} picked the index of the preset in use, or -1 */
  #mark(picked) {
    [...this.presets.children].forEach((button, index) => button.setAttribute("aria-pressed", String(index === picked)));
  }
}

/** @returns {Record<string, number | string>} the settings that are given; the service judges them */
function settings() {
  const given = ["max_tokens", "temperature", "seed"]
    .map((name) => [name, /** @type {HTMLInputElement} */ (byId(name)).value.trim()])
    .filter(([, value]) => value !== "")
    .map(([name, value]) => [name, Number.isNaN(Number(value)) ? value : Number(value)]);
  return { ...Object.fromEntries(given), whitespace: /** @type {HTMLSelectElement} */ (byId("whitespace")).value };
}

/** @param {string} tag @param {string} text */
function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
