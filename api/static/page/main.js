/** The page: ties what the user asks for to a run, and the run to the form, the times and the inspector. */

import { ApiError, Constrained } from "../constrained.js";
import "../constrained-form.js";
import { Compose } from "./compose.js";
import { Inspector } from "./inspector.js";
import { problemOf } from "./problem.js";
import { Timings } from "./timings.js";

/** @typedef {import("../constrained.js").Run} Run */

/** @param {string} id @returns {HTMLElement} */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const KEPT = "constrained-run";
const form = /** @type {import("../constrained-form.js").ConstrainedForm} */ (byId("form"));
const inspector = new Inspector(byId, () => form.text);
const timings = new Timings(byId);
const compose = new Compose(preview);
const buttons = { start: byId("start"), cancel: byId("cancel") };

byId("compose").addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
byId("compose").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) start();
});
buttons.cancel.addEventListener("click", () => form.run?.cancel().catch(() => {}));
form.addEventListener("draw", () => inspector.update());
form.addEventListener("statechange", ({ detail: { state } }) => {
  // Disabling the button that has the focus would throw the focus away.
  buttons.start.setAttribute("aria-disabled", String(state === "running"));
  buttons.cancel.setAttribute("aria-disabled", String(state !== "running"));
});
form.addEventListener("retry", (event) => {
  event.preventDefault();
  start();
});
if (window.matchMedia("(max-width: 60rem)").matches) byId("schema-part").removeAttribute("open");
takeUp();
void offerModels();
compose.key.addEventListener("change", offerModels);

/** A client with the key that was given, where the service asks for one. */
function client() {
  return new Constrained({ apiKey: compose.key.value.trim() || null });
}

async function offerModels() {
  try {
    compose.offer((await client().models()).map(({ id }) => id));
  } catch (error) {
    // The names of the models are an ornament: a run tells soon enough whether the service is there.
    if (error instanceof ApiError && error.code === "invalid_api_key") compose.askForKey();
  }
}

/** Show the empty form of a schema that is picked or typed. @param {unknown} schema */
function preview(schema) {
  if (form.run && !form.run.ended) return;
  sessionStorage.removeItem(KEPT);
  form.schema = schema;
  timings.clear();
  inspector.clear();
}

function start() {
  if (form.run && !form.run.ended) return;
  compose.clear();
  const { body, problem } = compose.read();
  if (problem) return refuse(problem);
  follow(client().stream(body), false);
}

/** @param {Run} run @param {boolean} joined */
function follow(run, joined) {
  form.run = run;
  inspector.clear();
  timings.begin(joined);
  run.on("event", (event) => inspector.take(event));
  run.on("start", ({ run: id }) => {
    sessionStorage.setItem(KEPT, JSON.stringify({ id, typed: compose.save() }));
    showResult();
  });
  run.on("delta", () => timings.first());
  run.on("done", (done) => timings.finish(done));
  run.on("state", () => run.ended && settle(run, joined));
}

/** The run has come to an end; where none began, say why where it can be mended. @param {Run} run @param {boolean} joined */
function settle(run, joined) {
  if (!run.done) timings.clear();
  if (!(run.error instanceof ApiError) || run.start) return;
  const problem = problemOf(run.error);
  if (joined) return compose.onSchema(JSON.parse(compose.schema.value)); // it has expired
  if (problem.place === "result") return;
  form.schema = form.schema;
  refuse(problem);
}

/** Nothing was started. @param {import("./problem.js").Problem} problem */
function refuse(problem) {
  compose.show(problem);
  form.say(`Not started. ${problem.title}`);
}

/** After a reload: what was typed, and the run that may still go on. */
function takeUp() {
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  if (!kept) return compose.pick(0);
  compose.restore(kept.typed);
  follow(client().join(kept.id), true);
}

/** On a narrow page the form lies below the fold: bring it into view, without moving the focus. */
function showResult() {
  if (form.getBoundingClientRect().top < window.innerHeight * 0.6) return;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  form.scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" });
}
