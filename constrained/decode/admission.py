"""Which requests may enter the engine, and with how many tokens. All checks happen before the first step."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any

from constrained.decode.held_end import row_for
from constrained.decode.options import ServedModel
from constrained.decode.request import SamplingParams
from constrained.decode.seeds import SeededStream
from constrained.decode.sequence import GrammarLike, MatcherLike, Sequence
from constrained.decode.shaping import LogitShaper
from constrained.decode.stops import StopText
from constrained.errors import BudgetError, ContextLengthError, RequestError


def admit(
    model: ServedModel,
    max_len: int,
    prompt_token_ids: Seq[int],
    params: SamplingParams,
    grammar: GrammarLike | None,
    owner: Any,
    prefix: bytes = b"",
) -> Sequence:
    """A sequence ready to wait. `max_tokens` is clipped to what `max_len` (the context, or what the KV memory holds of it)
    leaves after the prompt. `prefix` is the beginning of the document that the prompt ends with; the grammar goes on behind it.

    Raises `ContextLengthError` where the prompt leaves no room (or not enough for the smallest document), `BudgetError`
    where `max_tokens` itself cannot hold the smallest document, `RequestError` for a prompt that is empty or foreign, for
    biases of foreign tokens, and for stop strings beside a grammar.
    """
    tokens = [int(token) for token in prompt_token_ids]
    _check_prompt(tokens, model)
    _check_token_ids(params, model)
    room = max_len - len(tokens)
    needed = 1
    matcher = None
    if grammar is not None:
        _check_grammar(grammar, params, model)
        matcher = _matcher_behind(grammar, prefix)
        needed = max(1, matcher.min_tokens_to_end) if prefix else grammar.min_tokens
        if params.max_tokens < needed:
            raise BudgetError(
                f"max_tokens is {params.max_tokens}, but the smallest document may take {needed} tokens", "max_tokens"
            )
    if room < needed:
        raise ContextLengthError(
            f"the prompt has {len(tokens)} tokens, at most {max_len} fit: it leaves {room}, {needed} are needed",
            "prompt",
        )
    ends = model.eos_token_ids | params.stop_token_ids
    open_row = row_for(params, ends, model.vocabulary) if grammar is None else None
    holds_end = params.min_tokens > 0 and open_row is None
    return Sequence(
        tokens,
        params,
        min(params.max_tokens, room),
        matcher,
        SeededStream(params.seed),
        owner,
        LogitShaper(params, tokens, ends) if params.shapes_logits or holds_end else None,
        StopText(params.stop) if params.stop else None,
        open_row,
    )


def _matcher_behind(grammar: GrammarLike, prefix: bytes) -> MatcherLike:
    matcher = grammar.matcher()
    if prefix and not matcher.accept_bytes(prefix):
        raise RequestError("the grammar does not allow a document that begins with this prefix", "prefix")
    return matcher


def _check_prompt(tokens: list[int], model: ServedModel) -> None:
    if not tokens:
        raise RequestError("the prompt holds no token", "prompt")
    for token in tokens:
        if not 0 <= token < model.vocabulary.size:
            raise RequestError(f"token {token} of the prompt is not in the vocabulary of {model.vocabulary.size}", "prompt")


def _check_token_ids(params: SamplingParams, model: ServedModel) -> None:
    for name, ids in (("logit_bias", params.logit_bias), ("stop_token_ids", params.stop_token_ids)):
        for token in ids:
            if not 0 <= token < model.vocabulary.size:
                raise RequestError(f"token {token} of {name} is not in the vocabulary of {model.vocabulary.size}", name)


def _check_grammar(grammar: GrammarLike, params: SamplingParams, model: ServedModel) -> None:
    if grammar.vocabulary.fingerprint != model.vocabulary.fingerprint:
        raise RequestError(f"the grammar was compiled for another vocabulary than that of {model.name}", "grammar")
    for name in ("stop", "stop_token_ids"):
        if getattr(params, name):
            raise RequestError(f"{name} would cut a document before the end that its grammar gives it; leave it out", name)
