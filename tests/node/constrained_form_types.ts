/** The types of the element, as a page would use them; `tsc` reads this file, nothing runs it. */

import { Constrained } from "../../api/static/constrained.js";
import { ConstrainedForm, type Words } from "../../api/static/constrained-form.js";
import { WORDS } from "../../api/static/form/words.js";

interface Person {
  name: string;
  age: number;
}

const form = document.querySelector("constrained-form") as ConstrainedForm<Person>;
form.schema = { type: "object" };
form.run = new Constrained().stream<Person>({ schema: true, prompt: "Hello", resumable: true });
form.words = { retry: "Noch einmal", streaming: (model) => `${model} schreibt.` };
form.addEventListener("edit", ({ detail: { path, value, raw } }) => console.log(path, value, raw));
form.addEventListener("statechange", (event) => event.detail.state === "complete" && form.say("Done."));
form.addEventListener("click", () => form.remove());
export const age: number | undefined = form.value?.age;
export const text: string = document.createElement("constrained-form").text;

export const declared: Record<keyof Words, unknown> = WORDS;
export const known: Record<keyof typeof WORDS, unknown> = {} as Words;

// @ts-expect-error: not a state
form.addEventListener("statechange", (event) => event.detail.state === "done");
// @ts-expect-error: not a word
form.words = { stop: "Halt" };
// @ts-expect-error: what the run gives is not set from outside
form.value = { name: "Ada" };
