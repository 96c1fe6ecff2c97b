/** What the user asks for: schema, prompt, settings. Reads them as a request, and shows a problem beside its cause. */

import { PRESETS } from "./presets.js";
import { problemOfText } from "./problem.js";

/** @typedef {import("./problem.js").Problem} Problem */

const NUMBERS = ["max_tokens", "temperature", "seed", "top_p", "top_k", "min_p"];
const WORDS = ["model", "whitespace", "property_order"];

/** @template {HTMLElement} T @param {string} id @returns {T} */
const byId = (id) => /** @type {T} */ (document.getElementById(id));

export class Compose {
  schema = /** @type {HTMLTextAreaElement} */ (byId("schema"));
  prompt = /** @type {HTMLTextAreaElement} */ (byId("prompt"));
  key = /** @type {HTMLInputElement} */ (byId("key"));
  presets = byId("presets");

  /** @param {(schema: unknown) => void} onSchema called with each schema that is JSON, as it is picked or typed */
  constructor(onSchema) {
    this.onSchema = onSchema;
    this.presets.append(...PRESETS.map((preset, index) => this.#presetButton(preset, index)));
    this.schema.addEventListener("input", () => this.#typed());
    byId("settings-part").addEventListener("input", () => this.#tellSettings());
  }

  /** @param {number} index */
  pick(index) {
    const { schema, prompt, maxTokens } = PRESETS[index];
    this.schema.value = JSON.stringify(schema, null, 2);
    this.prompt.value = prompt;
    input("max_tokens").value = String(maxTokens);
    this.#tellSettings();
    this.#mark(index);
    this.clear();
    this.onSchema(schema);
  }

  /** @param {string[]} models */
  offer(models) {
    const select = /** @type {HTMLSelectElement} */ (byId("model"));
    const wanted = select.value;
    select.replaceChildren(...models.map((model) => new Option(model, model, false, model === wanted)));
  }

  /** @returns {{body: string, problem: null} | {body: null, problem: Problem}} the request, or why there is none */
  read() {
    const problem = problemOfText(this.schema.value) ?? this.#promptProblem();
    if (problem) return { body: null, problem };
    const messages = [{ role: "user", content: this.prompt.value }];
    const rest = JSON.stringify({ messages, ...settings(), resumable: true });
    // The schema goes as typed: JSON.parse would reorder numeric keys and round long numbers.
    return { body: `{"schema":${this.schema.value},${rest.slice(1)}`, problem: null };
  }

  /** @returns {Record<string, string>} what is typed, for `restore` */
  save() {
    return Object.fromEntries(["schema", "prompt", "key", ...NUMBERS, ...WORDS].map((name) => [name, input(name).value]));
  }

  /** @param {Record<string, string>} saved */
  restore(saved) {
    for (const [name, value] of Object.entries(saved)) {
      const box = input(name);
      if (name === "model" && value) box.append(new Option(value, value));
      box.value = value;
    }
    if (saved.key) this.askForKey();
    this.#tellSettings();
    this.#mark(PRESETS.findIndex(({ schema }) => JSON.stringify(schema, null, 2) === saved.schema));
  }

  /** The service is not open to all. */
  askForKey() {
    byId("key-part").hidden = false;
    /** @type {HTMLDetailsElement} */ (byId("settings-part")).open = true;
  }

  /** @param {Problem} problem one whose place is here */
  show({ place, title, detail, param }) {
    if (param === "key") this.askForKey();
    const box = byId(`${place}-problem`);
    const where = param && place === "schema" && param.startsWith("/") ? [element("code", param)] : [];
    box.replaceChildren(element("strong", title), element("span", detail), ...where);
    box.hidden = false;
    const part = box.closest("details");
    if (part) part.open = true;
    const culprit = input(place === "settings" ? (param ?? "max_tokens") : place);
    culprit?.setAttribute("aria-invalid", "true");
    culprit?.setAttribute("aria-describedby", box.id);
  }

  clear() {
    for (const box of document.querySelectorAll(".problem")) /** @type {HTMLElement} */ (box).hidden = true;
    for (const box of document.querySelectorAll("#compose [aria-invalid]")) {
      box.removeAttribute("aria-invalid");
      box.removeAttribute("aria-describedby");
    }
  }

  #typed() {
    this.#mark(-1);
    if (problemOfText(this.schema.value) === null) this.onSchema(JSON.parse(this.schema.value));
  }

  /** The settings that matter most, while they are folded away. */
  #tellSettings() {
    const { max_tokens, temperature, seed } = settings();
    const told = [max_tokens && `${max_tokens} tokens`, temperature !== undefined && `temperature ${temperature}`, seed !== undefined && `seed ${seed}`];
    byId("settings-told").textContent = told.filter(Boolean).join(", ");
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
  const number = (/** @type {string} */ text) => (Number.isNaN(Number(text)) ? text : Number(text));
  const given = [...NUMBERS, ...WORDS].map((name) => [name, input(name).value.trim()]).filter(([, value]) => value !== "");
  return Object.fromEntries(given.map(([name, value]) => [name, NUMBERS.includes(name) ? number(value) : value]));
}

/** @param {string} id @returns {HTMLInputElement} an input, a select or a textarea */
function input(id) {
  return byId(id);
}

/** @param {string} tag @param {string} text */
function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
