"""Log-probabilities of the engine as the official clients read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from constrained.decode.request import TokenLogprob
from schemas.openai import LogprobEntry, Logprobs, TopLogprob

TokenBytes = Callable[[int], bytes]
"""The bytes that a token stands for; of a special token its name."""


def chat_logprobs(entries: Iterable[TokenLogprob], bytes_of: TokenBytes) -> Logprobs:
    """Each token with the likeliest ones beside it; `top_logprobs` is there even where it is empty."""
    content = []
    for entry in entries:
        top = [_token(token_id, logprob, bytes_of) for token_id, logprob in entry.top]
        token = _token(entry.token_id, entry.logprob, bytes_of)
        content.append(LogprobEntry(token=token.token, logprob=token.logprob, bytes=token.bytes, top_logprobs=top))
    return Logprobs(content=content)


def _token(token_id: int, logprob: float, bytes_of: TokenBytes) -> TopLogprob:
    data = bytes_of(token_id)
    return TopLogprob(token=data.decode("utf-8", "replace"), logprob=finite_logprob(logprob), bytes=list(data))


def finite_logprob(logprob: float) -> float:
    """JSON has no infinity: what the mask forbids gets the official API's least number."""
    return max(logprob, -9999.0)
