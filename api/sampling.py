"""From the sampling fields that all text endpoints share to the engine's parameters."""

from __future__ import annotations

from constrained.decode.request import SamplingParams
from constrained.errors import RequestError
from schemas.sampling import MOST_STOPS, SamplingFields

BIAS_LIMIT = 100.0


def params_of(body: SamplingFields, max_tokens: int, logprobs: int | None = None) -> SamplingParams:
    """The engine's parameters; `RequestError` names the field that is out of range."""
    min_tokens = body.min_tokens or 0
    if min_tokens > max_tokens:
        raise RequestError(f"min_tokens is {min_tokens}, over the {max_tokens} of max_tokens", "min_tokens")
    return SamplingParams(
        temperature=1.0 if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        top_k=max(body.top_k or 0, 0),
        min_p=body.min_p or 0.0,
        seed=body.seed,
        max_tokens=max_tokens,
        repetition_penalty=1.0 if body.repetition_penalty is None else body.repetition_penalty,
        presence_penalty=body.presence_penalty or 0.0,
        frequency_penalty=body.frequency_penalty or 0.0,
        logit_bias=_logit_bias(body.logit_bias or {}),
        stop=_stops(body.stop),
        stop_token_ids=frozenset(body.stop_token_ids or ()),
        min_tokens=min_tokens,
        logprobs=logprobs,
        priority=body.priority or 0,
    )


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    strings = [stop] if isinstance(stop, str) else stop or []
    if len(strings) > MOST_STOPS:
        raise RequestError(f"At most {MOST_STOPS} stop strings are taken, found {len(strings)}", "stop")
    return tuple(string for string in strings if string)


def _logit_bias(given: dict[str, float]) -> dict[int, float]:
    for token_id, bias in given.items():
        if not token_id.isdecimal() or not token_id.isascii():
            raise RequestError(f"logit_bias maps token ids to numbers; {token_id!r} is no token id", f"logit_bias.{token_id}")
        if not -BIAS_LIMIT <= bias <= BIAS_LIMIT:
            raise RequestError(f"A bias lies between -100 and 100, found {bias}", f"logit_bias.{token_id}")
    return {int(token_id): bias for token_id, bias in given.items()}
