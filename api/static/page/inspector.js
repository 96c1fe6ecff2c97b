/** What came, beside the form: the JSON so far, the stream as text, and each event and operation to be looked into. */

const MAX_ROWS = 600;
const MAX_DETAIL_CHARS = 120;

/** A box that shows its end while it grows, unless it was scrolled away from it. Asks for no layout but its own. */
class Scroll {
  #atEnd = true;

  /** @param {HTMLElement} box */
  constructor(box) {
    this.box = box;
    box.addEventListener("scroll", () => (this.#atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 8), { passive: true });
  }

  /** It has grown. */
  follow() {
    if (this.#atEnd) this.box.scrollTop = this.box.scrollHeight;
  }
}

/** The newest of a long list, written once a frame while it can be seen. */
class Tail {
  #frame = 0;
  /** @type {Node[]} */
  #waiting = [];

  /** @param {HTMLElement} list @param {() => void} [onWrite] */
  constructor(list, onWrite = () => {}) {
    this.list = list;
    this.scroll = new Scroll(list);
    this.onWrite = onWrite;
  }

  clear() {
    this.#waiting = [];
    this.list.replaceChildren();
  }

  /** @param {Node} row */
  add(row) {
    this.#waiting.push(row);
    if (this.#waiting.length > MAX_ROWS) this.#waiting.shift();
    this.#frame ||= requestAnimationFrame(() => this.write());
  }

  write() {
    this.#frame = 0;
    this.onWrite();
    if (this.list.closest("[hidden]") || this.#waiting.length === 0) return;
    this.list.append(...this.#waiting);
    this.#waiting = [];
    while (this.list.childNodes.length > MAX_ROWS) this.list.firstChild?.remove();
    this.scroll.follow();
  }
}

/** The pane below the form. */
export class Inspector {
  #total = 0;
  #scroll;

  /** @param {(id: string) => HTMLElement} byId @param {() => string} readJson */
  constructor(byId, readJson) {
    this.json = byId("json");
    this.#scroll = new Scroll(this.json);
    this.count = byId("event-count");
    this.filter = /** @type {HTMLInputElement} */ (byId("filter"));
    this.stream = new Tail(byId("stream"));
    this.events = new Tail(byId("events"), () => (this.count.textContent = String(this.#total || "")));
    this.readJson = readJson;
    this.filter.addEventListener("input", () => this.#sift(this.events.list.children));
    for (const input of document.querySelectorAll("[name=pane]")) {
      input.addEventListener("change", () => this.#turnTo(/** @type {HTMLInputElement} */ (input).value));
    }
  }

  clear() {
    this.#total = 0;
    this.count.textContent = "";
    this.stream.clear();
    this.events.clear();
    this.update();
  }

  /** The document has changed; it is written out only while it can be seen. */
  update() {
    if (this.json.hidden) return;
    this.json.textContent = this.readJson();
    this.#scroll.follow();
  }

  /** @param {import("../constrained.js").RunEvent & {raw: string}} event */
  take({ event, id, data, raw }) {
    this.stream.add(document.createTextNode(`id: ${id}\nevent: ${event}\ndata: ${raw}\n\n`));
    if (event !== "delta") return this.#add(event, "", data);
    for (const { op, path, ...detail } of data.ops) this.#add(op, path, detail);
  }

  /** @param {string} name @param {string} path @param {object} detail */
  #add(name, path, detail) {
    this.#total++;
    const row = rowOf(name, path, detail);
    this.#sift([row]);
    this.events.add(row);
  }

  /** @param {Iterable<Element>} rows */
  #sift(rows) {
    const wanted = this.filter.value.trim();
    for (const row of rows) {
      const { path } = /** @type {HTMLElement} */ (row).dataset;
      /** @type {HTMLElement} */ (row).hidden = !path?.includes(wanted);
    }
  }

  /** @param {string} name */
  #turnTo(name) {
    for (const pane of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-pane]"))) {
      pane.hidden = pane.dataset.pane !== name;
    }
    for (const tail of [this.stream, this.events]) tail.write();
    this.update();
  }
}

/** One event, which opens to all that it says. @param {string} name @param {string} path @param {object} detail @returns {Element} */
function rowOf(name, path, detail) {
  const row = document.createElement("li");
  Object.assign(row.dataset, { name, path });
  const text = Object.keys(detail).length ? JSON.stringify(detail) : "";
  const parts = [name, path, text.length > MAX_DETAIL_CHARS ? `${text.slice(0, MAX_DETAIL_CHARS)}…` : text];
  const summary = document.createElement("summary");
  summary.append(...parts.map((part) => Object.assign(document.createElement("span"), { textContent: part })));
  const details = document.createElement("details");
  details.append(summary);
  details.addEventListener("toggle", () => fill(details, { [name]: path, ...detail }), { once: true });
  row.append(details);
  return row;
}

/** @param {HTMLDetailsElement} details @param {object} whole */
function fill(details, whole) {
  details.append(Object.assign(document.createElement("pre"), { textContent: JSON.stringify(whole, null, 2) }));
}
