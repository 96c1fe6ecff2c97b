/** The panes beside the form: the JSON so far, the list of events, the times of a finished run. */

const MAX_EVENT_ROWS = 400;
const MAX_DETAIL_CHARS = 120;

/** The JSON text so far; written only while it can be seen. */
export class JsonPane {
  /** @param {HTMLDetailsElement} details @param {HTMLElement} output @param {() => string} read */
  constructor(details, output, read) {
    this.details = details;
    this.output = output;
    this.read = read;
    details.addEventListener("toggle", () => this.update());
  }

  update() {
    if (this.details.open) this.output.textContent = this.read();
  }
}

/** The newest ops and events of a run, written once a frame. */
export class EventPane {
  #frame = 0;
  /** @type {HTMLElement[]} */
  #waiting = [];
  #total = 0;

  /** @param {HTMLElement} list @param {HTMLElement} count */
  constructor(list, count) {
    this.list = list;
    this.count = count;
  }

  clear() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#waiting = [];
    this.#total = 0;
    this.list.replaceChildren();
    this.count.textContent = "";
  }

  /** @param {string} name @param {string} place @param {unknown} detail */
  add(name, place, detail) {
    this.#total++;
    this.#waiting.push(row(name, place, detail));
    if (this.#waiting.length > MAX_EVENT_ROWS) this.#waiting.shift();
    this.#frame ||= requestAnimationFrame(() => this.#write());
  }

  #write() {
    this.#frame = 0;
    this.list.append(...this.#waiting);
    this.#waiting = [];
    while (this.list.childElementCount > MAX_EVENT_ROWS) this.list.firstElementChild?.remove();
    this.count.textContent = String(this.#total);
  }
}

/**
 * @param {HTMLElement} list a `dl`
 * @param {{usage: Record<string, number>, timings: Record<string, number>}} done
 */
export function showTimings(list, { usage, timings }) {
  const facts = [
    ["First token", milliseconds(timings.ttft_ms)],
    ["Speed", `${timings.tokens_per_s.toFixed(1)} tokens/s`],
    ["Tokens", `${usage.completion_tokens}`],
    ["Forced", `${usage.forced_tokens}`],
    ["Total", milliseconds(timings.total_ms)],
  ];
  list.replaceChildren(...facts.map(([term, value]) => fact(term, value)));
  list.hidden = false;
}

/** @param {number} ms */
function milliseconds(ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** @param {string} term @param {string} value */
function fact(term, value) {
  const pair = document.createElement("div");
  const dt = document.createElement("dt");
  const dd = document.createElement("dd");
  dt.textContent = term;
  dd.textContent = value;
  pair.append(dt, dd);
  return pair;
}

/** @param {string} name @param {string} place @param {unknown} detail */
function row(name, place, detail) {
  const item = document.createElement("li");
  item.dataset.name = name;
  const text = detail === undefined ? "" : JSON.stringify(detail);
  const parts = [name, place, text.length > MAX_DETAIL_CHARS ? `${text.slice(0, MAX_DETAIL_CHARS)}…` : text];
  item.append(
    ...parts.map((part) => {
      const span = document.createElement("span");
      span.textContent = part;
      return span;
    }),
  );
  return item;
}
