/** What application code may write, and what the compiler must refuse; `tsc` reads this file, nothing runs it. */

import {
  ApiError,
  Constrained,
  ConstrainedError,
  IncompleteError,
  type Change,
  type PartialValue,
  type RunEvent,
  type Saved,
} from "../../api/static/constrained.js";

interface Person {
  name: string;
  age: number;
  hobbies: { name: string; level: "low" | "high" }[];
}

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <T extends true>(): T | void => undefined;

const client = new Constrained({ baseUrl: "https://forms.example", apiKey: "key", timeoutMs: 0 });
const run = client.stream<Person>({ schema: { type: "object" }, messages: [{ role: "user", content: "Hello" }], seed: 1 });

same<Same<PartialValue<Person>["hobbies"], { name?: string; level?: "low" | "high" }[] | undefined>>();
const level: "low" | "high" | undefined = run.value?.hobbies?.[0]?.level;
export const person: Promise<Person> = run.final();
export const shown = [level, run.text, run.state === "reconnecting", run.done?.timings.ttft_ms];

run.on<string>("/hobbies/*/name", (change) => {
  const text: string = change.op === "text" ? change.add : (change.value ?? "");
  const index: string = change.keys[0];
  return [text, index, change.final];
});
run.on("done", (done) => done.usage.forced_tokens);
run.on("state", (state) => state === "disconnected" && run.canResume && run.resume());
const stop: () => void = run.on("event", ({ raw }) => raw.length);
stop();

export async function loop(): Promise<string[]> {
  const texts: string[] = [];
  for await (const event of run) {
    if (event.event === "delta") texts.push(...event.data.ops.flatMap((op) => (op.op === "text" ? [op.add] : [])));
    if (event.event === "done") texts.push(event.data.finish_reason);
  }
  return texts;
}

export async function failing(error: unknown): Promise<string> {
  if (error instanceof ApiError) return `${error.status} ${error.code} ${error.path}`;
  if (error instanceof IncompleteError) return `${error.finishReason} ${JSON.stringify(error.value)}`;
  return error instanceof ConstrainedError && error.retriable ? "again" : "no";
}

export async function rest(saved: Saved): Promise<void> {
  if (saved.run) client.join<Person>(saved.run, saved);
  await run.edit("/age", 35, { raw: "35" });
  await run.steer("Shorter, please.");
  await run.cancel();
  const answer = await client.complete<Person>({ choice: ["yes", "no"], prompt: "Well?" });
  const first: Person | null = answer.choices[0].value;
  const report = await client.check(true, { property_order: "any" });
  console.log(first, report.supported, (await client.models())[0].id);
}

export const over = (event: RunEvent): boolean => event.event === "done";
export const written = (change: Change<number>): number | undefined => change.value;

// @ts-expect-error: one constraint, not two
client.stream({ schema: true, regex: "a", prompt: "x" });
// @ts-expect-error: a prompt or messages
client.stream({ schema: true });
// @ts-expect-error: no such option
client.stream({ schema: true, prompt: "x", temprature: 1 });
// @ts-expect-error: neither an event nor a JSON Pointer
run.on("items", () => {});
// @ts-expect-error: what is partly there may be missing
export const length: number = run.value.hobbies.length;
// @ts-expect-error: not a member
export const nothing = run.value?.address;
// @ts-expect-error: runs come from a client
new (await import("../../api/static/constrained.js")).Run();
