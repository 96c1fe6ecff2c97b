/**
 * Server-sent events out of bytes, however they are cut (WHATWG HTML, 9.2.6 "Interpreting an event stream").
 * Knows neither the network nor what the events mean.
 */

/** @typedef {{event: string, data: string, id: string}} SseEvent */

const LINE_END = /\r\n|\r|\n/g;

export class SseDecoder {
  #utf8 = new TextDecoder();
  #line = "";
  #afterCr = false;
  #event = "";
  /** @type {string[]} */
  #data = [];
  #id = "";

  /**
   * @param {Uint8Array} bytes the next bytes of the stream
   * @returns {SseEvent[]} the events that they complete
   */
  feed(bytes) {
    let text = this.#utf8.decode(bytes, { stream: true });
    if (text === "") return [];
    // A CR already ended its line; an LF that arrives in a later chunk belongs to it.
    if (this.#afterCr && text.startsWith("\n")) text = text.slice(1);
    this.#afterCr = text === "" ? false : text.endsWith("\r");
    return this.#lines(text);
  }

  /** @param {string} text @returns {SseEvent[]} */
  #lines(text) {
    const events = [];
    let start = 0;
    for (const end of text.matchAll(LINE_END)) {
      const event = this.#take(this.#line + text.slice(start, end.index));
      if (event) events.push(event);
      this.#line = "";
      start = end.index + end[0].length;
    }
    this.#line += text.slice(start);
    return events;
  }

  /** @param {string} line a whole line @returns {SseEvent | null} the event, where the line ends one */
  #take(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#event = value;
    else if (name === "data") this.#data.push(value);
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    return null;
  }

  /** @returns {SseEvent | null} */
  #dispatch() {
    const event = { event: this.#event || "message", data: this.#data.join("\n"), id: this.#id };
    const empty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    return empty ? null : event;
  }
}

/**
 * The events of a response body as they arrive; leaving the loop closes the connection.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<SseEvent>}
 */
export async function* readEvents(body) {
  const decoder = new SseDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* decoder.feed(value);
    }
  } finally {
    // An aborted fetch has already failed this reader; there is nothing left to tell anyone.
    await reader.cancel().catch(() => {});
  }
}
