// The AI SDK's useObject hook, rendered without a browser, against the native endpoint's text stream. The service waits in
// the middle of the text until the first partial object has been rendered and another completion has been asked for.
// Usage: node use_object.mjs http://127.0.0.1:8000

import { experimental_useObject as useObject } from "@ai-sdk/react";
import { createElement } from "react";
import { create } from "react-test-renderer";
import { z } from "zod";

const person = z.object({ name: z.string(), age: z.number().int(), tags: z.array(z.string()) });
const body = { schema: z.toJSONSchema(person), prompt: "wait" };
const JSON_TYPE = { "content-type": "application/json" };
const partials = [];
const turn = () => new Promise((resolve) => setTimeout(resolve, 1));
let submit;
let isLoading;
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
  isLoading = hook.isLoading;
  if (hook.object !== undefined && partials.push(hook.object) === 1) {
    fetch(`${process.argv[2]}/v1/completions`, { method: "POST", headers: JSON_TYPE, body: JSON.stringify({ prompt: "go on" }) });
  }
  return null;
}

create(createElement(Person));
while (submit === undefined) await turn();
submit(body);
const outcome = await end;
while (isLoading) await turn();
console.log(JSON.stringify({ object: outcome.object, error: outcome.error && String(outcome.error), partials }));
