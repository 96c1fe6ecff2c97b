"""Log-probabilities of the engine as the official clients read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from constrained.decode.request import TokenLogprob
from schemas.completions import TextLogprobs
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


def text_logprobs(entries: Iterable[TokenLogprob], bytes_of: TokenBytes, offset: int) -> TextLogprobs:
    """The same in the form of text completions, the first token `offset` characters into the text."""
    tokens, logprobs, tops, offsets = [], [], [], []
    for entry in entries:
        token = _token(entry.token_id, entry.logprob, bytes_of)
        tokens.append(token.token)
        logprobs.append(token.logprob)
        offsets.append(offset)
        offset += len(token.token)
        likeliest = [_token(token_id, logprob, bytes_of) for token_id, logprob in entry.top]
        tops.append({top.token: top.logprob for top in likeliest})
    return TextLogprobs(tokens=tokens, token_logprobs=logprobs, top_logprobs=tops, text_offset=offsets)


def _token(token_id: int, logprob: float, bytes_of: TokenBytes) -> TopLogprob:
    data = bytes_of(token_id)
    return TopLogprob(token=data.decode("utf-8", "replace"), logprob=_finite(logprob), bytes=list(data))


def _finite(logprob: float) -> float:
    """JSON has no infinity: what the mask forbids gets the official API's least number."""
    return max(logprob, -9999.0)
