/** The parts below a run: events out of bytes however they are cut, ops into a value, and the protocol's invariants. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { EventDecoder, Fold, ProtocolError, joinPointer } from "../../api/static/constrained.js";

const KEYS = ["a", "10", "2", "~/", "", "__proto__", "constructor", "ключ"];
const TEXTS = ["", "plain", 'quo"te\\', "日本 🙂", "\u2028\u0000\t", "👩‍👩‍👧"];
const SCALARS = [null, true, false, 0, -1.5, 1e300];

/** Numbers that are the same for the same seed. @param {number} seed */
function dice(seed) {
  let state = seed * 2654435761 + 1;
  return (/** @type {number} */ sides) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

function randomValue(roll, depth = 0) {
  const kind = roll(depth < 3 ? 4 : 2);
  if (kind === 0) return TEXTS[roll(TEXTS.length)];
  if (kind === 1) return SCALARS[roll(SCALARS.length)];
  const values = Array.from({ length: roll(4) }, () => randomValue(roll, depth + 1));
  if (kind === 2) return values;
  const object = {};
  for (const value of values) Object.defineProperty(object, KEYS[roll(KEYS.length)], { value, enumerable: true, configurable: true });
  return object;
}

/** The ops of a run that writes `value`, its texts cut anywhere between two characters. */
function* opsOf(value, roll, path = "") {
  if (roll(2)) yield { op: "field", path, types: ["string"] };
  if (typeof value === "string") {
    yield { op: "open", path, type: "string" };
    for (let rest = [...value]; rest.length; ) yield { op: "text", path, add: rest.splice(0, 1 + roll(rest.length)).join("") };
    yield { op: "close", path };
  } else if (value !== null && typeof value === "object") {
    yield { op: "open", path, type: Array.isArray(value) ? "array" : "object" };
    for (const [key, below] of Object.entries(value)) yield* opsOf(below, roll, joinPointer(path, key));
    yield { op: "close", path };
  } else yield { op: "set", path, value };
}

function folded(ops, fold = new Fold()) {
  for (const op of ops) fold.apply(op);
  return fold;
}

test("folding gives the value, and a snapshot at any point is as good", () => {
  for (let seed = 0; seed < 300; seed++) {
    const roll = dice(seed);
    const value = randomValue(roll);
    const ops = [...opsOf(value, roll)];
    const whole = folded(ops);
    assert.deepEqual(whole.value, value);
    assert.deepEqual(JSON.parse(whole.text), value);
    assert.deepEqual(new Set(whole.status.values()), new Set(["complete"]));
    const stop = roll(ops.length + 1);
    const resumed = new Fold();
    resumed.restore(JSON.parse(JSON.stringify(folded(ops.slice(0, stop)).snapshot())));
    folded(ops.slice(stop), resumed);
    assert.deepEqual(resumed.value, value);
    assert.deepEqual(resumed.status, whole.status);
  }
});

test("nothing that was there is ever taken back while a value grows", () => {
  const holds = (now, then) => {
    if (typeof then === "string") return typeof now === "string" && now.startsWith(then);
    if (then === null || typeof then !== "object") return Object.is(now, then);
    return Array.isArray(now) === Array.isArray(then) && Object.entries(then).every(([key, below]) => holds(now[key], below));
  };
  for (let seed = 0; seed < 50; seed++) {
    const roll = dice(seed + 1000);
    const fold = new Fold();
    let then;
    for (const op of opsOf([randomValue(roll), randomValue(roll)], roll)) {
      fold.apply(op);
      if (then !== undefined) assert.ok(holds(fold.value, then), JSON.stringify(op));
      then = structuredClone(fold.value);
    }
  }
});

test("a number that a double would lose keeps its lexeme, and what is open stays unclosed", () => {
  const fold = folded([
    { op: "open", path: "", type: "object" },
    { op: "set", path: "/n", value: 1, raw: "12345678901234567890123" },
    { op: "open", path: "/a", type: "string" },
    { op: "text", path: "/a", add: 'say "hi' },
  ]);
  assert.equal(fold.text, '{\n  "n": 12345678901234567890123,\n  "a": "say \\"hi');
  assert.deepEqual(fold.openPaths, ["", "/a"]);
});

test("a member named __proto__ is a member", () => {
  const fold = folded([
    { op: "open", path: "", type: "object" },
    { op: "open", path: "/__proto__", type: "object" },
    { op: "set", path: "/__proto__/x", value: 1 },
  ]);
  assert.deepEqual(Object.keys(fold.value), ["__proto__"]);
  assert.equal(fold.value.x, undefined);
});

test("only what is final can be edited", () => {
  const fold = folded([
    { op: "open", path: "", type: "object" },
    { op: "set", path: "/a", value: null },
    { op: "open", path: "/b", type: "string" },
  ]);
  fold.edit("/a", "text");
  assert.deepEqual(fold.value, { a: "text", b: "" });
  for (const path of ["/b", "/c", ""]) assert.throws(() => fold.edit(path, 1), ProtocolError);
});

const OBJECT = { op: "open", path: "", type: "object" };
const BROKEN = {
  "text unopened": [{ op: "text", path: "", add: "x" }],
  "text in an object": [OBJECT, { op: "text", path: "", add: "x" }],
  "no parent": [{ op: "set", path: "/a", value: 1 }],
  "a gap": [{ op: "open", path: "", type: "array" }, { op: "set", path: "/1", value: 1 }],
  "an index with a zero": [{ op: "open", path: "", type: "array" }, { op: "set", path: "/00", value: 1 }],
  twice: [{ op: "set", path: "", value: 1 }, { op: "set", path: "", value: 2 }],
  "a member again": [OBJECT, { op: "set", path: "/a", value: 1 }, { op: "set", path: "/a", value: 1 }],
  "after its close": [OBJECT, { op: "close", path: "" }, { op: "set", path: "/a", value: 1 }],
  "closed twice": [OBJECT, { op: "close", path: "" }, { op: "close", path: "" }],
  "closed around something open": [OBJECT, { op: "open", path: "/a", type: "string" }, { op: "close", path: "" }],
  "beside something open": [OBJECT, { op: "open", path: "/a", type: "string" }, { op: "set", path: "/b", value: 1 }],
  "below a string": [OBJECT, { op: "open", path: "/a", type: "string" }, { op: "set", path: "/a/0", value: 1 }],
  "an unknown op": [{ op: "retract", path: "" }],
  "an op of Object.prototype": [{ op: "toString", path: "" }],
  "an unknown type": [{ op: "open", path: "", type: "number" }],
};

for (const [name, ops] of Object.entries(BROKEN)) {
  test(`what breaks the protocol is refused: ${name}`, () => assert.throws(() => folded(ops), ProtocolError));
}

test("events come out of bytes however they are cut", () => {
  const data = JSON.stringify({ text: "Grüße 日本 🙂" });
  for (const end of ["\n", "\r\n", "\r"]) {
    const stream = [": ping", "id: r:1", "event: delta", `data: ${data}`, "", ": x", "data:a", "data: b", "", "event: none", "", ""];
    const bytes = new TextEncoder().encode(stream.join(end));
    const expected = [
      { event: "delta", id: "r:1", data },
      { event: "message", id: "r:1", data: "a\nb" },
    ];
    for (let size = 1; size <= bytes.length; size++) {
      const decoder = new EventDecoder();
      const events = [];
      for (let at = 0; at < bytes.length; at += size) events.push(...decoder.feed(bytes.subarray(at, at + size)));
      assert.deepEqual(events, expected, `${JSON.stringify(end)} in pieces of ${size}`);
    }
  }
});
