/** Types of constrained-form.js; importing it defines `<constrained-form>`. */

import type { PartialValue, Run } from "./constrained.js";

export interface Edit {
  path: string;
  value: unknown;
  /** The value as the user spelled it, where it is a number. */
  raw: string | null;
}

/** What the form says; set before the schema or the run. */
export interface Words {
  idle: string;
  connecting: string;
  streaming: string | ((model: string) => string);
  reconnecting: string;
  complete: string;
  invalid: string;
  closed: string;
  length: string;
  cancelled: string;
  disconnected: string;
  failed: string | ((why: string) => string);
  part: string | ((label: string) => string);
  edited: string | ((label: string) => string);
  refused: string | ((label: string) => string);
  kept: string;
  resume: string;
  retry: string;
  next: string;
  writing: string;
  absent: string;
  interrupted: string;
  optional: string;
  nullable: string;
  none: string;
  yes: string;
  no: string;
  needsInteger: string;
  needsNumber: string;
  document: string;
  entry: string;
  entries: string | ((count: string) => string);
  any: string;
  or: string;
}

export interface ConstrainedFormEvents {
  edit: CustomEvent<Edit>;
  /** The user asks for the request anew; where it is not prevented, the element does. */
  retry: CustomEvent<null>;
  statechange: CustomEvent<{ state: "idle" | "running" | "complete" | "failed" }>;
  /** A frame has brought the form in line with the run. */
  draw: Event;
}

export class ConstrainedForm<V = any> extends HTMLElement {
  schema: unknown;
  run: Run<V> | null;
  words: Partial<Words>;
  readonly value: PartialValue<V> | undefined;
  readonly text: string;
  say(text: string, milestone?: string): void;
  addEventListener<K extends keyof ConstrainedFormEvents>(
    type: K,
    listener: (this: ConstrainedForm<V>, event: ConstrainedFormEvents[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
}

declare global {
  interface HTMLElementTagNameMap {
    "constrained-form": ConstrainedForm;
  }
}
