/**
 * `<constrained-form>`: a form that draws itself from a schema and fills itself from a run. See docs/form.md.
 *
 * Needs `constrained.js` and its own parts in `form/`. The element shows; what is asked of the service is the run's affair.
 */

import { ApiError, splitPointer } from "./constrained.js";
import { View } from "./form/view.js";
import { make } from "./form/widgets.js";
import { saying } from "./form/words.js";

/** @typedef {import("./constrained.js").Run} Run */
/** @typedef {import("./form/words.js").Key} Key */

const STYLE = new URL("form/form.css", import.meta.url).href;

/** What the page can select by `[state]`, for each state of a run. */
const STATES = /** @type {Record<string, string>} */ ({
  connecting: "running",
  streaming: "running",
  reconnecting: "running",
  complete: "complete",
});

export class ConstrainedForm extends HTMLElement {
  static formAssociated = true;
  /** @type {import("./constrained-form.js").ConstrainedForm["words"]} what it says instead of its own words */
  words = {};
  #say = saying(() => this.words);
  #internals = this.attachInternals();
  /** @type {Run | null} */
  #run = null;
  /** @type {unknown} */
  #schema = true;
  /** @type {(() => void)[]} */
  #stops = [];
  #parts = this.#build();
  #view = new View(this.#parts.fields, {
    onDraw: () => this.#drawn(),
    onEdit: (path, value, raw) => void this.#edit(path, value, raw),
    say: this.#say,
  });

  connectedCallback() {
    // A page may have set these before the element was defined.
    for (const name of /** @type {const} */ (["schema", "run"])) {
      if (!Object.hasOwn(this, name)) continue;
      const value = this[name];
      delete (/** @type {any} */ (this)[name]);
      this[name] = /** @type {any} */ (value);
    }
    if (!this.hasAttribute("state")) this.schema = this.#schema;
  }

  get schema() {
    return this.#schema;
  }

  /** Leaves the run, if there is one, and shows the empty form of a schema. */
  set schema(schema) {
    this.#leave();
    this.#schema = schema;
    this.#view.draw(schema);
    this.#show("idle", this.#say("idle"));
    this.#view.flush();
  }

  get run() {
    return this.#run;
  }

  /** Fills the form from a run, as far as it is and to its end. */
  set run(run) {
    this.#leave();
    if (!run) {
      this.schema = this.#schema;
      return;
    }
    this.#run = run;
    if (run.start) this.#begin();
    else this.#drawWaiting();
    this.#stops = [
      run.on("start", () => this.#begin()),
      run.on("/**", (change) => this.#changed(change)),
      run.on("snapshot", (snapshot) => this.#leap(snapshot)),
      run.on("state", () => this.#turn()),
    ];
    this.#turn();
  }

  /** The first choice's value so far, with the user's corrections. */
  get value() {
    return this.#run?.value;
  }

  /** The same as JSON text, numbers as they were written. */
  get text() {
    return this.#run?.text ?? "";
  }

  /** Say something in the status line, which is read out. @param {string} text never generated text @param {string} [milestone] */
  say(text, milestone) {
    const { status } = this.#parts;
    status.replaceChildren(make("span", "", text), ...(milestone ? [" ", make("span", "milestone", milestone)] : []));
  }

  // -- following a run

  #leave() {
    for (const stop of this.#stops) stop();
    this.#stops = [];
    this.#run = null;
  }

  /** The request has the schema, until the service says the same. */
  #drawWaiting() {
    const { request } = /** @type {Run} */ (this.#run);
    const body = typeof request === "string" ? JSON.parse(request) : request;
    this.#schema = body?.schema ?? this.#schema;
    this.#view.draw(this.#schema);
  }

  #begin() {
    const { start, folds } = /** @type {Run} */ (this.#run);
    if (this.#view.fold === folds[0]) return; // the same run again, after a connection that broke
    this.#schema = start?.schema;
    this.#view.draw(this.#schema, start?.order, folds[0]);
    if (this.#run?.state === "streaming") this.#show("running", this.#say("streaming", start?.model));
  }

  /** @param {import("./constrained.js").Change} change */
  #changed({ op, path }) {
    this.#view.touch(path);
    if (op === "edit") this.#pass("edited", path);
    if (op === "close" && splitPointer(path).length === 1 && this.#view.fold.nodes.get(path)?.kind !== "string") {
      this.#pass("part", path);
    }
  }

  /** A snapshot says what is next; and where a whole part was replaced, what was in it may be gone. @param {import("./constrained.js").Snapshot} snapshot */
  #leap({ status, edited, choice }) {
    if (choice !== 0) return;
    for (const path of Object.keys(status)) if (status[path] === "next") this.#view.touch(path);
    const node = this.#view.fold.nodes.get(edited ?? "");
    if (edited && (node?.kind === "object" || node?.kind === "array")) this.#view.redraw();
  }

  /** A milestone on the way. @param {Key} what @param {string} path */
  #pass(what, path) {
    this.say(this.#outcome(/** @type {Run} */ (this.#run)), this.#say(what, this.#view.labelOf(path)));
  }

  /** The run's state has changed. */
  #turn() {
    const run = /** @type {Run} */ (this.#run);
    this.#view.end(run.ended);
    this.#show(STATES[run.state] ?? "failed", this.#outcome(run));
    this.#parts.notice.hidden = !run.ended || run.state === "complete";
    this.#parts.kept.textContent = run.value === undefined ? "" : this.#say("kept");
    this.#parts.again.textContent = this.#say(run.canResume ? "resume" : "retry");
    this.#parts.again.hidden = !run.canResume && run.request === null;
  }

  /** @param {Run} run @returns {string} */
  #outcome(run) {
    if (run.state === "complete") return this.#say(!run.done?.valid ? "invalid" : run.done.closed_by_budget ? "closed" : "complete");
    if (run.state === "incomplete") return this.#say("length");
    if (run.state === "failed") return this.#say("failed", run.error?.message);
    return this.#say(/** @type {Key} */ (run.state), run.start?.model);
  }

  /** @param {string} state @param {string} told */
  #show(state, told) {
    const before = this.getAttribute("state");
    this.setAttribute("state", state);
    this.#parts.notice.hidden = true;
    this.say(told);
    if (before !== state) this.dispatchEvent(new CustomEvent("statechange", { detail: { state } }));
  }


  #drawn() {
    this.#parts.bar.style.scale = `${this.#view.progress} 1`;
    this.#internals.setFormValue(this.#run?.ended ? this.text : null);
    this.dispatchEvent(new Event("draw"));
  }

  // -- what the user does

  /** A value was corrected: while the run goes on the service has the last word, afterwards the form is the user's. */
  async #edit(/** @type {string} */ path, /** @type {unknown} */ value, /** @type {string | null} */ raw) {
    const run = /** @type {Run} */ (this.#run);
    try {
      if (!run.ended) await run.edit(/** @type {import("./constrained.js").Pointer} */ (path), value, { raw });
      else this.#editHere(path, value, raw);
    } catch (error) {
      const ended = run.ended || (error instanceof ApiError && error.code === "run_ended");
      if (this.#run !== run || !ended) return this.#refuse(run, path, error);
      await run.final().catch(() => {}); // its last event may be on the way
      this.#editHere(path, value, raw);
    }
    this.dispatchEvent(new CustomEvent("edit", { detail: { path, value, raw } }));
  }

  /** @param {string} path @param {unknown} value @param {string | null} raw */
  #editHere(path, value, raw) {
    this.#run?.folds[0].edit(path, value, raw);
    this.#view.touch(path);
    this.#view.flush();
  }

  /** @param {Run} run @param {string} path @param {unknown} error */
  #refuse(run, path, error) {
    if (this.#run !== run) return;
    this.#pass("refused", path);
    this.#view.blame(path, error instanceof Error ? error.message : `${error}`);
  }

  #again() {
    const run = /** @type {Run} */ (this.#run);
    if (run.canResume) run.resume();
    else if (this.dispatchEvent(new CustomEvent("retry", { cancelable: true })) && run.request) {
      this.run = run.client.stream(run.request);
    }
  }

  // -- parts

  #build() {
    const root = this.attachShadow({ mode: "open" });
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: STYLE });
    const progress = make("div", "progress");
    const status = make("p", "status");
    status.setAttribute("role", "status");
    status.setAttribute("aria-live", "polite");
    status.setAttribute("part", "status");
    const bar = make("div", "bar");
    bar.setAttribute("aria-hidden", "true");
    progress.append(status, bar);
    const notice = make("div", "notice");
    notice.hidden = true;
    notice.setAttribute("part", "notice");
    const kept = make("p", "kept");
    const again = /** @type {HTMLButtonElement} */ (make("button", "again"));
    again.type = "button";
    again.setAttribute("part", "button");
    again.addEventListener("click", () => this.#again());
    notice.append(kept, again);
    const fields = make("div", "fields");
    fields.setAttribute("part", "fields");
    const form = make("div", "form");
    form.append(progress, notice, fields);
    // Unstyled fields would jump into their places.
    form.hidden = true;
    style.onload = style.onerror = () => (form.hidden = false);
    root.append(style, form);
    return { status, bar, notice, kept, again, fields };
  }
}

customElements.define("constrained-form", ConstrainedForm);
