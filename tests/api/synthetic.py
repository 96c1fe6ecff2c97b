"""A backend without a model: it gives documents that were fixed beforehand, in small chunks, as the engine would.

The last words of the prompt may direct it: `fail`, `hang`, `wait`, `slow`. Run as a program it serves the app:
`python -m tests.api.synthetic --port 8000`.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from api.backend import Messages
from constrained.decode.prompt import SchemaPrompt
from constrained.decode.request import Chunk, FinishReason, SamplingParams, TokenLogprob, Usage
from constrained.errors import BudgetError, ContextLengthError
from constrained.options import CompileOptions
from tests.api.examples import example
from tests.api.grammar import compile_with_bytes

if TYPE_CHECKING:
    from constrained import CompiledGrammar

FREE_TEXT = "Grüße – 你好 🙂 and that is all."
Write = Callable[[Any], str]


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(eq=False)
class SyntheticGeneration:
    """Gives `data` in tokens of `token_bytes` bytes; `directive` is `fail`, `hang`, `wait`, `slow` or nothing.

    It fails, hangs until it is cancelled, or waits until it `may_go_on`, in the middle. It says that it took `made_s` seconds
    from its first token on, where that is given, and how long it took where it is not.
    """

    data: bytes
    num_prompt_tokens: int
    max_tokens: int
    token_bytes: int
    delay_s: float
    directive: str = ""
    logprobs: int | None = None
    made_s: float | None = None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    may_go_on: threading.Event = field(default_factory=threading.Event)
    num_given: int = 0
    began_at: float = field(default_factory=time.monotonic)
    ttft_ms: float = 0.0

    def cancel(self) -> None:
        self.cancelled.set()

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        tokens = [self.data[i : i + self.token_bytes] for i in range(0, len(self.data), self.token_bytes)]
        given = tokens[: self.max_tokens]
        for index, token in enumerate(given):
            if index == len(given) // 2:
                if self.directive == "fail":
                    yield self._chunk(b"", "error", RuntimeError("the step broke"))
                    return
                if self.directive == "hang":
                    await self.cancelled.wait()
                while self.directive == "wait" and not (self.may_go_on.is_set() or self.cancelled.is_set()):
                    await asyncio.sleep(0.005)
            await asyncio.sleep(self.delay_s)
            if self.cancelled.is_set():
                yield self._chunk(b"", "cancelled")
                return
            self.num_given += 1
            yield self._chunk(token)
        yield self._chunk(b"", "stop" if len(given) == len(tokens) else "length")

    def _chunk(self, data: bytes, reason: FinishReason | None = None, error: Exception | None = None) -> Chunk:
        total_ms = 1000 * (time.monotonic() - self.began_at)
        self.ttft_ms = self.ttft_ms or total_ms
        if self.made_s is not None:
            total_ms = self.ttft_ms + 1000 * self.made_s
        usage = Usage(self.num_prompt_tokens, self.num_given, ttft_ms=self.ttft_ms, total_ms=total_ms)
        usage.cached_tokens, usage.forced_tokens = self.num_prompt_tokens // 2, self.num_given // 2
        return Chunk(data, tuple(data[:1]), reason, error, usage, self._logprobs(data[:1]))

    def _logprobs(self, token: bytes) -> tuple[TokenLogprob, ...]:
        """The token is its first byte; the likeliest beside it is always `@`."""
        if self.logprobs is None or not token:
            return ()
        return (TokenLogprob(token[0], -0.25, ((token[0], -0.25), (ord("@"), -inf))[: self.logprobs]),)


class SyntheticBackend:
    """Gives `documents` in turn, one to each choice of each request; without any, an example of the request's schema."""

    name = "synthetic"

    def __init__(
        self,
        *documents: str | bytes,
        token_bytes: int = 3,
        delay_s: float = 0.0,
        context_len: int = 4096,
        made_s: float | None = None,
        compile_schema: Callable[[Any, CompileOptions], CompiledGrammar] | None = None,
    ) -> None:
        self.context_len = context_len
        self.compile = compile_schema or compile_with_bytes
        self.generations: list[SyntheticGeneration] = []
        self.prompts: list[str] = []
        self.params: list[SamplingParams] = []
        self.prefixes: list[bytes] = []
        self.closed = False
        self._documents = [text.encode() if isinstance(text, str) else text for text in documents]
        self._token_bytes = token_bytes
        self._delay_s = delay_s
        self._made_s = made_s

    def encode(
        self, prompt: Messages | str, schema: Any | None, prefix: bytes = b"", template: SchemaPrompt | None = None
    ) -> list[int]:
        """One token a byte; the schema comes first, the beginning of the answer last."""
        text = prompt if isinstance(prompt, str) else "\n".join(message["content"] for message in prompt)
        told = "" if schema is None else f"{template.instruction(schema) if template else compact(schema)}\n"
        return list((told + text).encode() + prefix)

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id])

    def submit(
        self, prompt_token_ids: list[int], params: SamplingParams, grammar: Any, *, prefix: bytes = b""
    ) -> SyntheticGeneration:
        if len(prompt_token_ids) >= self.context_len:
            raise ContextLengthError(f"The prompt has {len(prompt_token_ids)} tokens, the context {self.context_len}", "prompt")
        if grammar is not None and params.max_tokens < grammar.min_tokens:
            raise BudgetError(f"The smallest document needs {grammar.min_tokens} tokens", "max_tokens")
        prompt = bytes(prompt_token_ids).removesuffix(prefix).decode()
        self.prompts.append(prompt)
        self.params.append(params)
        self.prefixes.append(prefix)
        directive = prompt.split()[-1]
        document = self._rest(grammar, prefix) if prefix else self._document(grammar)
        generation = SyntheticGeneration(
            document[: min([at for stop in params.stop if (at := document.find(stop.encode())) >= 0], default=None)],
            len(prompt_token_ids),
            params.max_tokens,
            self._token_bytes,
            0.05 if directive == "slow" else self._delay_s,
            directive,
            params.logprobs,
            self._made_s,
        )
        self.generations.append(generation)
        return generation

    def reset(self, document: str, token_bytes: int) -> None:
        """Give this document from now on."""
        self._documents, self._token_bytes = [document.encode()], token_bytes

    def go_on(self) -> None:
        """Let what waits write on."""
        for generation in self.generations:
            generation.may_go_on.set()

    def _document(self, grammar: Any) -> bytes:
        if self._documents:
            return self._documents[len(self.generations) % len(self._documents)]
        if grammar is not None and grammar.is_text:
            return self._shortest(grammar, b"")
        return (FREE_TEXT if grammar is None else compact(example(grammar.schema))).encode()

    def _rest(self, grammar: Any, prefix: bytes) -> bytes:
        """What follows `prefix`: the rest of the document that begins so, else the shortest end."""
        document = self._document(grammar)
        if document.startswith(prefix):
            return document[len(prefix) :]
        return self._shortest(grammar, prefix)

    def _shortest(self, grammar: Any, prefix: bytes) -> bytes:
        """The shortest end of a document that begins with `prefix`."""
        matcher = grammar.matcher()
        assert matcher.accept_bytes(prefix)
        while not matcher.is_complete:
            matcher.accept_token(matcher.closing_token())
        return bytes(matcher.text[len(prefix) :])

    async def close(self) -> None:
        self.closed = True
        for generation in self.generations:
            generation.cancel()


def main() -> None:
    """Serve the app over a synthetic backend."""
    import argparse

    import uvicorn

    from api.app import create_app

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    options = parser.parse_args()
    backend = SyntheticBackend(delay_s=options.delay_ms / 1000)
    uvicorn.run(create_app(backend=backend), host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
