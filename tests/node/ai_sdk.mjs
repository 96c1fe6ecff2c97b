// The Vercel AI SDK against a running service: each scenario's outcome is one member of the JSON that is printed.
// Usage: node ai_sdk.mjs http://127.0.0.1:8000

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Output, generateObject, generateText, streamObject, streamText, tool } from "ai";
import { z } from "zod";

const baseURL = `${process.argv[2]}/v1`;
const compatible = createOpenAICompatible({ name: "constrained", baseURL, apiKey: "none", supportsStructuredOutputs: true });
const openai = createOpenAI({ baseURL, apiKey: "none" });
const models = {
  compatible: compatible("synthetic"),
  chat: openai.chat("synthetic"),
  responses: openai.responses("synthetic"),
};

const person = z.object({ name: z.string(), age: z.number().int(), tags: z.array(z.string()) });
const prompt = "hello";
const weather = tool({
  description: "The weather of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, sky: "clear" }),
});

const scenarios = {
  async generateObject(model) {
    const { object, usage, finishReason } = await generateObject({ model, schema: person, prompt });
    return { object, finishReason, tokens: usage.totalTokens };
  },
  async streamObject(model) {
    const { partialObjectStream, object } = streamObject({ model, schema: person, prompt });
    let partials = 0;
    for await (const _ of partialObjectStream) partials += 1;
    return { object: await object, partials };
  },
  async outputObject(model) {
    const { output } = await generateText({ model, output: Output.object({ schema: person }), prompt });
    return { object: output };
  },
  async streamText(model) {
    let text = "";
    for await (const part of streamText({ model, prompt }).textStream) text += part;
    return { text };
  },
  async tools(model) {
    const { toolCalls, toolResults } = await generateText({ model, tools: { weather }, toolChoice: "required", prompt });
    return { names: toolCalls.map((call) => call.toolName), inputs: toolCalls.map((call) => call.input), results: toolResults.length };
  },
  async streamTools(model) {
    const result = streamText({ model, tools: { weather }, prompt });
    const kinds = [];
    for await (const part of result.fullStream) kinds.push(part.type);
    return { kinds: [...new Set(kinds)], reason: await result.finishReason };
  },
  async refusal(model) {
    try {
      await generateText({ model, prompt, stopSequences: Array(17).fill("x"), seed: -1, maxRetries: 0 });
      return { status: 200 };
    } catch (error) {
      return { status: error.statusCode, message: error.message };
    }
  },
};

const outcomes = {};
for (const [api, model] of Object.entries(models)) {
  for (const [name, run] of Object.entries(scenarios)) {
    try {
      outcomes[`${api}.${name}`] = await run(model);
    } catch (error) {
      outcomes[`${api}.${name}`] = { error: String(error?.stack ?? error) };
    }
  }
}
console.log(JSON.stringify(outcomes));
