// The AI SDK's useObject hook, rendered without a browser, against the native endpoint's text stream.
// Usage: node use_object.mjs http://127.0.0.1:8000

import { experimental_useObject as useObject } from "@ai-sdk/react";
import { act, createElement } from "react";
import { create } from "react-test-renderer";
import { z } from "zod";

globalThis.IS_REACT_ACT_ENVIRONMENT = true;

const person = z.object({ name: z.string(), age: z.number().int(), tags: z.array(z.string()) });
const body = { schema: z.toJSONSchema(person), prompt: "hello" };
const partials = [];
let submit;
let finished;
const end = new Promise((resolve) => {
  finished = resolve;
});

function Person() {
  const hook = useObject({
    api: `${process.argv[2]}/v1/structured/stream`,
    headers: { accept: "text/plain" },
    schema: person,
    onFinish: finished,
    onError: (error) => finished({ error }),
  });
  submit = hook.submit;
  if (hook.object !== undefined) partials.push(hook.object);
  return null;
}

await act(async () => create(createElement(Person)));
let outcome;
await act(async () => {
  submit(body);
  outcome = await end;
});
console.log(JSON.stringify({ object: outcome.object, error: outcome.error && String(outcome.error), partials: partials.length }));
