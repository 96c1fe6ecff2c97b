// What the AI SDK makes of JSON that has not ended; see docs/comparison.md.
import { parsePartialJson } from "ai";

const told = {};
for (const text of JSON.parse(process.argv[2])) told[text] = (await parsePartialJson(text)).value;
console.log(JSON.stringify(told));
