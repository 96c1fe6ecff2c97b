/** Runs against a live service, whose address is in SERVICE_URL, over both transports and over connections that break. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import {
  ApiError,
  CancelledError,
  ConnectionLostError,
  Constrained,
  Fold,
  IncompleteError,
  ProtocolError,
  RunError,
} from "../../api/static/constrained.js";
import { Proxy, answering, closeServers, frame } from "./network.mjs";

const SERVICE = process.env.SERVICE_URL;
const PERSON = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 12 },
    age: { type: "integer" },
    hobbies: { type: "array", items: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } },
  },
  required: ["name", "age", "hobbies"],
  additionalProperties: false,
};
const PATIENCE_MS = 300_000; // a first run may wait for kernels that are compiled in the meantime
const TEXT = 'Ada "Lovelace" – 日本 🙂\n';
const VALUE = { name: TEXT.slice(0, 12), age: 37, hobbies: [{ name: TEXT }, { name: TEXT }] };
const LONG = { type: "array", items: PERSON, minItems: 40 };

const ask = (prompt = "hello", options = {}) => ({ schema: PERSON, prompt, coalesce_ms: 0, ...options });
const until = (run, holds) =>
  new Promise((resolve) => {
    const stop = run.on("event", () => holds(run) && (stop(), resolve()));
  });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The fold of what a loop got, which must count upwards. */
function foldOf(events, choice = 0) {
  const fold = new Fold();
  let seq = 0;
  for (const { event, data } of events) {
    if (event === "start" || event === "error" || data.choice !== choice) continue;
    assert.ok(data.seq > seq, `${data.seq} after ${seq}`);
    seq = data.seq;
    if (event === "snapshot") fold.restore(data);
    else for (const op of data.ops) fold.apply(op);
  }
  return fold;
}

async function all(run) {
  const events = [];
  for await (const event of run) events.push(event);
  return events;
}

let proxy;
beforeEach(async () => (proxy = await Proxy.before(SERVICE)));
afterEach(() => (proxy.close(), closeServers()));

for (const transport of ["http", "websocket"]) {
  const client = (options = {}) => new Constrained({ baseUrl: proxy.url, transport, timeoutMs: PATIENCE_MS, ...options });
  const CUTS = transport === "http" ? [3000, 2500] : [1100, 600]; // bytes within the run, over two connections
  const skip = transport === "websocket" && !globalThis.WebSocket && "this Node has no WebSocket";
  describe(`over ${transport}`, { skip }, () => {
    test("a run tells its events, grows its value and ends with it", async () => {
      const run = client().stream(ask());
      assert.equal(run.value, undefined);
      const states = [];
      run.on("state", (state) => states.push(state));
      const events = await all(run);
      assert.deepEqual([events[0].event, events.at(-1).event], ["start", "done"]);
      assert.ok(events.filter(({ event }) => event === "delta").length > 10);
      assert.deepEqual(foldOf(events).value, VALUE);
      assert.deepEqual([run.value, JSON.parse(run.text), await run.final()], [VALUE, VALUE, VALUE]);
      assert.deepEqual(states, ["streaming", "complete"]);
      assert.equal(run.done.valid, true);
      assert.equal(run.start.model, "synthetic");
    });

    test("a path is listened to with stars, and nothing of it is missed by who comes late", async () => {
      const run = client().stream(ask());
      const added = {};
      const finals = [];
      run.on("/hobbies/*/name", ({ op, add, keys: [index], value, final }) => {
        if (op === "text") added[index] = (added[index] ?? "") + add;
        if (final) finals.push([index, value]);
      });
      const ages = [];
      run.on("/age", ({ op, value }) => ages.push([op, value]));
      const stop = run.on("/name", () => stop());
      await run.final();
      assert.deepEqual(added, { 0: TEXT, 1: TEXT });
      assert.deepEqual(finals, [["0", TEXT], ["1", TEXT]]);
      assert.deepEqual(ages, [["field", undefined], ["set", 37]]);
      const late = [];
      run.on("/hobbies/**", ({ op, path, final }) => late.push([op, path, final]));
      const paths = ["/hobbies", "/hobbies/0", "/hobbies/0/name", "/hobbies/1", "/hobbies/1/name"];
      assert.deepEqual(late, paths.map((path) => ["snapshot", path, true]));
      assert.throws(() => run.on("hobbies", () => {}), TypeError);
    });

    test("a loop that comes late, or falls behind, gets a snapshot for what it missed", async () => {
      const run = client().stream(ask("hello", { schema: LONG, max_tokens: 4000 }));
      const events = [];
      for await (const event of run) {
        events.push(event);
        if (events.length === 2) await run.final(); // over a thousand events pile up
      }
      assert.ok(events.length < 1500, `${events.length}`);
      assert.ok(events.some(({ event }) => event === "snapshot"));
      const late = await all(run);
      assert.deepEqual(late.map(({ event }) => event), ["start", "snapshot", "done"]);
      assert.equal(late[1].data.value.length, 40);
      assert.deepEqual(late[1].data.value, await run.final());
    });

    test("a resumable run goes on over connections that break, nothing lost or doubled", async () => {
      const limits = [...CUTS];
      proxy.limit = () => limits.shift() ?? Infinity;
      const run = client().stream(ask("slow", { resumable: true }));
      const names = [];
      run.on("/hobbies/*/name", ({ op, add }) => op === "text" && names.push(add));
      const states = [];
      run.on("state", (state) => states.push(state));
      const events = await all(run);
      assert.deepEqual(foldOf(events).value, VALUE);
      assert.equal(names.join(""), TEXT + TEXT);
      assert.deepEqual(await run.final(), VALUE);
      assert.deepEqual(states, ["streaming", "reconnecting", "streaming", "reconnecting", "streaming", "complete"]);
      assert.equal(proxy.requests.filter((line) => line.startsWith("POST")).length, transport === "http" ? 1 : 0);
      assert.equal(proxy.requests.length, 3);
    });

    test("a run that is not resumable is not asked for again", async () => {
      const run = client().stream(ask("hang"));
      await until(run, () => run.value?.name);
      proxy.cut();
      await assert.rejects(all(run), ConnectionLostError);
      await assert.rejects(run.final(), { code: "connection_lost", retriable: true });
      assert.equal(run.state, "disconnected");
      assert.equal(run.canResume, false);
      assert.throws(() => run.resume(), TypeError);
      assert.equal(proxy.requests.length, 1);
      assert.ok(VALUE.name.startsWith(run.value.name));
    });

    test("a run that was given up is resumed on demand, with all that is there", async () => {
      const limits = CUTS.slice(0, 1);
      proxy.limit = () => limits.shift() ?? Infinity;
      const run = client({ maxReconnects: 0 }).stream(ask("slow", { resumable: true }));
      await assert.rejects(run.final(), ConnectionLostError);
      assert.equal(run.canResume, true);
      run.resume();
      assert.equal(run.state, "reconnecting");
      assert.deepEqual(await run.final(), VALUE);
      assert.equal(run.error, null);
    });

    for (const resumable of [false, true]) {
      test(`cancelling stops the ${resumable ? "resumable " : ""}run itself`, async () => {
        const controller = new AbortController();
        const run = client().stream(ask("hang", { resumable }), { signal: controller.signal });
        await until(run, () => run.value?.name);
        controller.abort();
        assert.equal(run.state, "cancelled");
        assert.equal((await all(run)).at(-1).event, "snapshot");
        await assert.rejects(run.final(), (error) => error instanceof CancelledError && error.value.name.length > 0);
        await run.cancel();
        const end = client().join(run.id);
        await assert.rejects(end.final(), { code: "cancelled", finishReason: "cancelled" });
        assert.equal(end.done.finish_reason, "cancelled");
      });
    }

    test("a closed value is corrected, and something is said to the run", async () => {
      const run = client().stream(ask("hang"));
      const told = [];
      run.on("/name", (change) => told.push([change.op, change.value, change.final]));
      await until(run, () => run.value?.age);
      const { seq } = await run.edit("/name", "Grace");
      assert.ok(seq > 0);
      await assert.rejects(run.edit("/age", "old"), { code: "invalid_value", path: "/age" });
      await assert.rejects(run.edit("/nothing", 1), ApiError);
      await run.edit("/age", 0, { raw: "12345678901234567890" });
      await run.steer("now write on");
      const value = await run.final();
      assert.deepEqual([value.name, run.value.name], ["Grace", "Grace"]);
      assert.deepEqual(told.at(-1), ["edit", "Grace", true]);
      assert.equal(run.done.valid, true);
      await assert.rejects(run.steer("too late"), (error) => error instanceof ApiError || error instanceof ConnectionLostError);
    });

    test("who joins gets what is there and what follows; who saved goes on behind it", async () => {
      const first = client().stream(ask("slow", { resumable: true }));
      await until(first, () => first.value?.name);
      const saved = JSON.parse(JSON.stringify(first.save()));
      const fresh = client().join(first.id);
      const behind = client().join(saved.run, saved);
      assert.deepEqual(behind.value.name, saved.documents[0].value.name);
      const events = await Promise.all([all(fresh), all(behind)]);
      assert.deepEqual(events.map(([one, two]) => [one.event, two.event]), [["start", "snapshot"], ["start", "snapshot"]]);
      assert.deepEqual(await Promise.all([first.final(), fresh.final(), behind.final()]), [VALUE, VALUE, VALUE]);
      assert.ok(events[1].every(({ event, data }) => event !== "delta" || data.seq > saved.after));
      assert.throws(() => client().join("run_1", { after: 3 }), TypeError);
    });

    test("each choice has its value", async () => {
      const run = client().stream(ask("hello", { n: 2, resumable: true }));
      const names = [];
      run.on("/name", ({ final, value, choice }) => final && names.push([choice, value]), { choice: 1 });
      proxy.limit = () => 6000;
      const events = await all(run);
      assert.deepEqual(run.values, [VALUE, VALUE]);
      assert.deepEqual([foldOf(events, 0).value, foldOf(events, 1).value], [VALUE, VALUE]);
      assert.deepEqual(names, [[1, VALUE.name]]);
      assert.deepEqual(await run.final({ choice: 1 }), VALUE);
    });

    test("what the service refuses is an ApiError that names the place", async () => {
      const schema = { properties: { a: { pattern: "(a)\\1" } } };
      const run = client().stream({ schema, prompt: "x" });
      await assert.rejects(run.final(), (error) => error instanceof ApiError && error.path === "/properties/a/pattern");
      assert.deepEqual([run.error.code, run.error.retriable, run.state], ["unsupported_keyword", false, "failed"]);
      if (transport === "http") assert.ok(run.error.status === 400 && run.error.requestId);
      await assert.rejects(all(run), ApiError);
      await assert.rejects(client().join("run_of_nobody").final(), { code: "run_not_found" });
    });

    test("a run that fails keeps its value and says why", async () => {
      const run = client().stream(ask("fail"));
      const events = await all(run);
      assert.equal(events.at(-1).event, "error");
      assert.deepEqual((await all(run)).map(({ event }) => event), ["start", "snapshot", "error"]);
      await assert.rejects(run.final(), (error) => error instanceof RunError && error.code === "internal_error" && error.path !== null);
      assert.equal(run.state, "failed");
      assert.ok(run.value.name);
    });

    test("a run that is cut at its limit is incomplete", async () => {
      const run = client().stream(ask("hello", { max_tokens: 8, schema: { type: "string" } }));
      await assert.rejects(run.final(), (error) => error instanceof IncompleteError && TEXT.startsWith(error.value));
      assert.deepEqual([run.state, run.error.finishReason, run.error.code], ["incomplete", "length", "length"]);
    });

    test("a service that is not there is a lost connection", async () => {
      const nobody = new Constrained({ baseUrl: "http://127.0.0.1:9", transport });
      await assert.rejects(nobody.stream(ask()).final(), ConnectionLostError);
      await assert.rejects(nobody.models(), ConnectionLostError);
    });
  });
}

for (const seed of [1, 2, 3]) {
  test(`wherever a connection breaks, nothing is lost or doubled (${seed})`, async () => {
    let roll = seed * 7919;
    proxy.limit = () => 2500 + ((roll = (roll * 48271) % 2147483647) % 2500);
    const run = new Constrained({ baseUrl: proxy.url, timeoutMs: PATIENCE_MS }).stream(ask("hello", { resumable: true, schema: { ...LONG, minItems: 6 } }));
    const changes = [];
    run.on("/3/name", ({ op, add }) => op === "text" && changes.push(add));
    const states = new Set();
    run.on("state", (state) => states.add(state));
    const events = await all(run);
    const value = Array(6).fill(VALUE);
    assert.deepEqual(foldOf(events).value, value);
    assert.equal(changes.join(""), VALUE.name);
    assert.deepEqual(await run.final(), value);
    assert.ok(states.has("reconnecting"));
    assert.equal(proxy.requests.filter((line) => line.startsWith("POST")).length, 1);
    assert.ok(proxy.requests.length > 1);
  });
}

test("a connection that falls silent is left, and the run taken up again", async () => {
  const client = new Constrained({ baseUrl: proxy.url, timeoutMs: PATIENCE_MS });
  let connections = 0;
  proxy.limit = () => (++connections === 1 ? 2000 : Infinity);
  proxy.stalls = () => {
    client.timeoutMs = connections === 1 ? 300 : PATIENCE_MS; // of the next connection: the second alone is impatient
    return connections === 2;
  };
  assert.deepEqual(await client.stream(ask("slow", { resumable: true })).final(), VALUE);
  assert.equal(connections, 3);
});

test("a run that is cancelled before it has begun is never asked for, or as soon as it has a name", async () => {
  const client = new Constrained({ baseUrl: proxy.url });
  const never = client.stream(ask());
  void never.cancel();
  await assert.rejects(never.final(), CancelledError);
  assert.deepEqual(proxy.requests, []);
  const aborted = client.stream(ask(), { signal: AbortSignal.abort() });
  await assert.rejects(aborted.final(), CancelledError);
  const late = new Constrained({
    baseUrl: proxy.url,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      await pause(50);
      return response;
    },
  });
  const run = late.stream(ask("hang", { resumable: true }));
  await pause(20);
  await run.cancel();
  assert.deepEqual([run.state, run.id], ["cancelled", null]);
  while (run.id === null) await pause(5);
  await assert.rejects(client.join(run.id).final(), CancelledError);
});

test("a run that has expired is not resumed for ever", async () => {
  let connections = 0;
  const server = await answering((request, response) => {
    if (connections++) {
      response.writeHead(410, { "content-type": "application/json", "x-should-retry": "false" });
      return response.end('{"error":{"message":"It is gone.","type":"x","param":"run","code":"run_expired"}}');
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(frame(0, "start", { run: "r", model: "m", schema: true, order: [], choices: 1 }));
  });
  const run = new Constrained({ baseUrl: server.url }).stream(ask("x", { resumable: true }));
  await assert.rejects(run.final(), (error) => error instanceof ApiError && error.code === "run_expired" && error.status === 410);
  assert.deepEqual([run.state, run.canResume, connections], ["failed", false, 2]);
});

test("a reader that was too slow takes a resumable run up again", async () => {
  const asked = [];
  const server = await answering((request, response) => {
    asked.push(request.url);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const slow = { seq: 9, code: "slow_consumer", message: "Too slow.", path: null, retriable: true };
    if (asked.length === 1) return response.end(STARTED + frame(1, "delta", { seq: 1, choice: 0, ops: [WRITTEN[0]] }) + frame(8, "error", slow));
    response.end(frame(4, "delta", { seq: 3, choice: 0, ops: WRITTEN.slice(1) }) + frame(4, "done", DONE));
  });
  const client = new Constrained({ baseUrl: server.url });
  assert.equal(await client.stream(ask("x", { resumable: true })).final(), "x");
  assert.deepEqual(asked, ["/v1/structured/stream", "/v1/structured/r/events?after=1"]);
  asked.length = 0;
  await assert.rejects(client.stream(ask()).final(), (error) => error instanceof RunError && error.code === "slow_consumer");
});

const STARTED = frame(0, "start", { run: "r", model: "m", schema: true, order: [], choices: 1 });
const WRITTEN = [{ op: "open", path: "", type: "string" }, { op: "text", path: "", add: "x" }, { op: "close", path: "" }];
const DONE = {
  seq: 4,
  finish_reason: "stop",
  finish_reasons: ["stop"],
  status: "complete",
  valid: true,
  usage: {},
  timings: { queue_ms: 0, ttft_ms: 0, total_ms: 600, tokens_per_s: 9 },
};

for (const buffers of [true, false]) {
  test(`a proxy that ${buffers ? "buffers is" : "passes everything on is not"} warned of, once`, async () => {
    const server = await answering(async (request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const frames = [STARTED, ...WRITTEN.map((op, index) => frame(index + 1, "delta", { seq: index + 1, choice: 0, ops: [op] }))];
      for (const text of frames) {
        await pause(buffers ? 500 : 300);
        if (!buffers) response.write(text);
      }
      const timings = { ...DONE.timings, total_ms: buffers ? 2000 : 600 }; // a quarter of it is a burst
      response.end((buffers ? frames.join("") : "") + frame(4, "done", { ...DONE, timings }));
    });
    const warnings = [];
    const client = new Constrained({ baseUrl: server.url, warn: (message) => warnings.push(message) });
    assert.deepEqual(await Promise.all([client.stream(ask()).final(), client.stream(ask()).final()]), ["x", "x"]);
    assert.equal(warnings.length, buffers ? 1 : 0);
    if (buffers) assert.match(warnings[0], /buffers/);
    });
}

for (const [name, body] of Object.entries({
  "data that are not JSON": "event: delta\ndata: {\n\n",
  "an op that breaks the fold": frame(1, "delta", { seq: 1, choice: 0, ops: [WRITTEN[1]] }),
  "a delta without ops": frame(1, "delta", { seq: 1, choice: 0 }),
  "a choice that is not there": frame(1, "delta", { seq: 1, choice: 3, ops: WRITTEN }),
})) {
  test(`a service that does not speak the protocol is a ProtocolError: ${name}`, async () => {
    const server = await answering((request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(STARTED + body);
    });
    const run = new Constrained({ baseUrl: server.url }).stream(ask("x", { resumable: true }));
    await assert.rejects(run.final(), ProtocolError);
    assert.equal(run.state, "failed");
    });
}

test("a loop that was left holds nothing back", async () => {
  const run = new Constrained({ baseUrl: SERVICE }).stream(ask("hello", { schema: LONG, max_tokens: 4000 }));
  for await (const { event } of run) if (event === "delta") break;
  assert.equal((await run.final()).length, 40);
});

test("an answer that is no event stream is not taken for one", async () => {
  const server = await answering((request, response) => response.writeHead(200, { "content-type": "text/html" }).end("<h1>Log in</h1>"));
  const run = new Constrained({ baseUrl: server.url }).stream(ask("x", { resumable: true }));
  await assert.rejects(run.final(), (error) => error instanceof ProtocolError && /text\/html/.test(error.message));
});

test("an answer that is a proxy's page is an ApiError with its status", async () => {
  const server = await answering((request, response) => response.writeHead(502, { "retry-after": "7" }).end("<h1>Bad gateway</h1>"));
  const run = new Constrained({ baseUrl: server.url }).stream(ask());
  await assert.rejects(run.final(), (error) => error.status === 502 && error.retriable && error.retryAfterMs === 7000);
});

test("the key and further headers are sent, whole answers, reports and models come", async () => {
  const heads = [];
  const client = new Constrained({
    baseUrl: `${SERVICE}/`,
    apiKey: "secret",
    headers: { "X-Tenant": "t" },
    fetch: (url, init) => (heads.push(new Headers(init.headers)), fetch(url, init)),
  });
  const answer = await client.complete(ask());
  assert.deepEqual(answer.choices[0].value, VALUE);
  assert.equal((await client.check(PERSON)).supported, true);
  assert.equal((await client.models())[0].id, "synthetic");
  assert.equal(await client.stream({ choice: ["yes", "no"], prompt: "Well?" }).final(), "no");
  assert.ok(heads.every((head) => head.get("authorization") === "Bearer secret" && head.get("x-tenant") === "t"));
});
