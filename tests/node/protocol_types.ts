// Read with `tsc --noEmit` alone: the exported types say what a reader of the protocol may rely on.
import type { ClientMessage, Event, Line, Op, ServerMessage, StructuredRequest } from "../../schemas/protocol.d.ts";

export function textOf(line: Line): string {
  switch (line.event) {
    case "start":
      return line.data.order.join(" ");
    case "delta":
      return line.data.ops.map(describe).join("");
    case "snapshot":
      return Object.entries(line.data.status).map(([path, status]) => path + status).join();
    case "error":
      return line.data.code + (line.data.path ?? "");
    case "done":
      return line.data.finish_reasons.join() + line.data.usage.total_tokens.toFixed();
    default:
      return nothing(line);
  }
}

function describe(op: Op): string {
  switch (op.op) {
    case "field":
      return op.types.join();
    case "variant":
      return op.schema_pointer;
    case "open":
      return op.type;
    case "text":
      return op.add;
    case "set":
      return op.raw ?? JSON.stringify(op.value);
    case "close":
      return op.path;
    default:
      return nothing(op);
  }
}

function nothing(impossible: never): never {
  throw new Error(`not exhaustive: ${String(impossible)}`);
}

export const request: StructuredRequest = { schema: { type: "string" }, prompt: "hello", resumable: true };
export const messages: ClientMessage[] = [
  { op: "start", request },
  { op: "edit", path: "/name", value: "Grace" },
  { op: "steer", text: "be brief", id: "1" },
  // @ts-expect-error: there is no such message
  { op: "dance" },
  // @ts-expect-error: a correction has a path
  { op: "edit", value: 1 },
];
export const told = (message: ServerMessage): boolean => "reply" in message || message.event === "done";
// @ts-expect-error: a number may not stand for the path
export const wrong: Op = { op: "close", path: 3 };
export const end: Event = { seq: 1, code: "internal_error", message: "it broke" };
