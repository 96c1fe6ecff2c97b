/** How long it took, and how many of the tokens the schema left no choice about. */

/** @typedef {import("../constrained.js").Done} Done */

/** Measures a run from here until the service says it better. */
export class Timings {
  #began = 0;
  #timer = 0;
  /** @type {number | null} */
  #first = null;

  /** @param {(id: string) => HTMLElement} byId */
  constructor(byId) {
    this.box = byId("timings");
    this.facts = byId("facts");
    this.strip = byId("strip");
  }

  clear() {
    clearInterval(this.#timer);
    this.box.hidden = true;
  }

  /** @param {boolean} joined whether the run began elsewhere, so that nothing can be measured */
  begin(joined) {
    this.clear();
    if (joined) return;
    this.#began = performance.now();
    this.#first = null;
    this.strip.hidden = true;
    this.box.hidden = false;
    this.#tick();
    this.#timer = window.setInterval(() => this.#tick(), 100);
  }

  /** The first of the document has come. */
  first() {
    this.#first ??= performance.now() - this.#began;
  }

  /** @param {Done} done */
  finish({ usage, timings }) {
    clearInterval(this.#timer);
    this.box.hidden = false;
    const { completion_tokens: tokens, forced_tokens: forced } = usage;
    this.#show([
      ["First token", milliseconds(timings.ttft_ms)],
      ["Speed", `${timings.tokens_per_s.toFixed(1)} tokens/s`],
      ["Tokens", `${tokens}`],
      ["Forced", `${forced}${tokens ? ` (${Math.round((forced / tokens) * 100)} %)` : ""}`],
      ["Total", milliseconds(timings.total_ms)],
    ]);
    this.strip.hidden = tokens === 0;
    this.strip.title = `${forced} of ${tokens} tokens were forced by the schema; the model chose the others.`;
    /** @type {HTMLElement} */ (this.strip.firstElementChild).style.inlineSize = `${tokens ? (forced / tokens) * 100 : 0}%`;
  }

  #tick() {
    this.#show([
      ["First token", this.#first === null ? "…" : milliseconds(this.#first)],
      ["Total", milliseconds(performance.now() - this.#began)],
    ]);
  }

  /** @param {[string, string][]} facts */
  #show(facts) {
    this.facts.replaceChildren(
      ...facts.map(([term, value]) => {
        const pair = document.createElement("div");
        const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
        dt.textContent = term;
        dd.textContent = value;
        pair.append(dt, dd);
        return pair;
      }),
    );
  }
}

/** @param {number} ms */
function milliseconds(ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
