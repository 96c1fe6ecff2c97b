/** The service as the page sees it: start a run and read its events, ask for the models, and why it refused. */

import { readEvents } from "./sse.js";

/** @typedef {{name: string, data: any}} RunEvent */

/** An answer that is not 2xx, or none at all (`status` 0). */
export class ServiceError extends Error {
  /** @param {number} status @param {{message?: string, param?: string | null, code?: string | null}} error */
  constructor(status, { message, param = null, code = null }) {
    super(message ?? `The service answered with status ${status}.`);
    this.status = status;
    this.param = param;
    this.code = code;
  }
}

/**
 * Start a run and yield its events; leaving the loop, or aborting the signal, cancels the run.
 *
 * @param {string} body the request as JSON
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<RunEvent>}
 */
export async function* run(body, signal) {
  const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
  const response = await fetch("v1/structured/stream", { method: "POST", headers, body, signal });
  if (!response.ok || !response.body) throw new ServiceError(response.status, await errorOf(response));
  for await (const { event, data } of readEvents(response.body)) yield { name: event, data: JSON.parse(data) };
}

/** @returns {Promise<string[]>} the ids of the models served */
export async function models() {
  const response = await fetch("v1/models", { headers: { Accept: "application/json" } });
  if (!response.ok) throw new ServiceError(response.status, await errorOf(response));
  const { data } = await response.json();
  return data.map((/** @type {{id: string}} */ model) => model.id);
}

/** @param {Response} response @returns {Promise<{message?: string, param?: string | null, code?: string | null}>} */
async function errorOf(response) {
  try {
    return (await response.json()).error ?? {};
  } catch {
    // A proxy may answer in HTML; the status is then all there is to tell.
    return {};
  }
}
