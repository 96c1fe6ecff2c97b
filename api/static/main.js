/** The page: ties what the user asks for to the run, and the run to the form and the panes. */

import { Compose } from "./compose.js";
import { Form } from "./form.js";
import { EventPane, JsonPane, showTimings } from "./panes.js";
import { tokens } from "./pointer.js";
import { problemOf } from "./problem.js";
import { SchemaTree } from "./schema.js";
import { ServiceError, models, run } from "./service.js";

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const page = {
  compose: byId("compose"),
  start: /** @type {HTMLButtonElement} */ (byId("start")),
  cancel: /** @type {HTMLButtonElement} */ (byId("cancel")),
  result: byId("result"),
  status: byId("status"),
  timings: byId("timings"),
  notice: byId("notice"),
  noticeText: byId("notice-text"),
  noticeKept: byId("notice-kept"),
  retry: byId("retry"),
};

/** @type {AbortController | null} the run in progress */
let current = null;

const form = new Form(byId("form"), () => json.update());
const json = new JsonPane(/** @type {HTMLDetailsElement} */ (byId("json-pane")), byId("json"), () => form.fold.text);
const events = new EventPane(byId("events"), byId("event-count"));
const compose = new Compose(preview);

page.compose.addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
page.compose.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) start();
});
page.retry.addEventListener("click", start);
page.cancel.addEventListener("click", () => current?.abort());
models()
  .then(([model]) => (byId("model").textContent = model ?? ""))
  .catch(() => {
    // The name of the model is an ornament: a run tells soon enough whether the service is there.
  });

/** Show the empty form of a schema that is picked or typed. @param {unknown} schema */
function preview(schema) {
  if (current) return;
  try {
    form.draw(new SchemaTree(schema));
  } catch {
    // Not a schema: the service says what is wrong with it, once it is asked.
    form.draw(new SchemaTree(true));
  }
  reset("idle", "Ready.");
  json.update();
}

async function start() {
  if (current) return;
  compose.clear();
  const { body, problem } = compose.read();
  if (problem) return refuse(problem);
  current = new AbortController();
  reset("running", "Connecting…");
  try {
    const finished = await follow(body, current.signal);
    if (!finished) fail("The connection ended before the document did.");
  } catch (error) {
    if (current.signal.aborted) fail("Cancelled.");
    else if (error instanceof ServiceError) refuse(problemOf(error));
    else fail(`The run broke off: ${/** @type {Error} */ (error).message}.`);
  } finally {
    current = null;
    controls(false);
  }
}

/** @param {string} body @param {AbortSignal} signal @returns {Promise<boolean>} whether a terminal event came */
async function follow(body, signal) {
  let finished = false;
  for await (const { name, data } of run(body, signal)) {
    HANDLERS[name]?.(data);
    finished ||= name === "done" || name === "error";
  }
  return finished;
}

/** @type {Record<string, (data: any) => void>} */
const HANDLERS = {
  start({ run, schema, order, model }) {
    form.draw(new SchemaTree(schema, order));
    events.add("start", "", { run, model });
    say(`${model} is writing.`);
    showResult();
  },
  delta({ choice, ops }) {
    if (choice !== 0) return;
    for (const op of ops) {
      form.apply(op);
      const { op: name, path, ...detail } = op;
      events.add(name, path, name === "close" ? undefined : detail);
      if (name === "close") milestone(path);
    }
  },
  snapshot(data) {
    form.restore(data);
    events.add("snapshot", "", { open: data.open });
  },
  error({ code, message, path }) {
    events.add("error", path ?? "", { code });
    fail(message);
  },
  done(data) {
    events.add("done", "", { finish_reason: data.finish_reason, valid: data.valid });
    showTimings(page.timings, data);
    if (data.status === "complete") finish(data);
    else fail(data.finish_reason === "length" ? "The token limit was reached." : `The run stopped (${data.finish_reason}).`);
  },
};

/** @param {{valid: boolean, closed_by_budget: boolean}} done */
function finish({ valid, closed_by_budget }) {
  form.flush();
  page.result.dataset.run = valid ? "complete" : "failed";
  const cut = closed_by_budget ? " It was brought to a close at the token limit." : "";
  say(valid ? `Complete. The document is valid.${cut}` : "Complete, but the document is not valid.");
}

/** The run ended early: keep what is complete, mark what is open, offer another try. @param {string} reason */
function fail(reason) {
  form.interrupt();
  form.flush();
  page.result.dataset.run = "failed";
  page.noticeText.textContent = reason;
  page.noticeKept.hidden = form.fold.root === null;
  page.notice.hidden = false;
  say(reason);
}

/** Nothing was started: say why, where it can be mended. @param {import("./problem.js").Problem} problem */
function refuse(problem) {
  if (problem.place === "result") return fail(`${problem.title} ${problem.detail}`);
  page.result.dataset.run = "idle";
  compose.show(problem);
  say(`Not started. ${problem.title}`);
}

/** Say that a part at the top of the document is complete. @param {string} path the path of a `close` */
function milestone(path) {
  const kind = form.fold.nodes.get(path)?.kind;
  if (tokens(path).length === 1 && kind !== "string") say(`${form.labelOf(path)} complete.`);
}

/** @param {"idle" | "running"} state @param {string} status */
function reset(state, status) {
  page.result.dataset.run = state;
  page.notice.hidden = true;
  page.timings.hidden = true;
  events.clear();
  controls(state === "running");
  say(status);
}

/** @param {boolean} running */
function controls(running) {
  // Disabling the button that has the focus would throw the focus away.
  page.start.setAttribute("aria-disabled", String(running));
  page.cancel.setAttribute("aria-disabled", String(!running));
}

/** @param {string} text a milestone, never generated text */
function say(text) {
  page.status.textContent = text;
}

/** On a narrow page the form lies below the fold: bring it into view, without moving the focus. */
function showResult() {
  if (page.result.getBoundingClientRect().top < window.innerHeight * 0.6) return;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  page.result.scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" });
}
