"""What one more token does to a sequence: its grammar moves on, its budget is kept, its end is seen.

The invariant under a grammar: the budget that is left always holds the shortest completion. A sampled token that would
break it is taken back before anyone has seen it, and the closing token goes in its place. `jump` adds what needs no
model: the tokens that the grammar forces, and, where the budget or the time is down to the shortest completion, that.
"""

from __future__ import annotations

from collections.abc import Collection

from constrained.decode.sequence import MatcherLike, Sequence
from constrained.errors import InternalError


def advance(sequence: Sequence, token_id: int, eos_token_ids: Collection[int], *, is_closing: bool = False) -> int:
    """Append the token, or the closing one in its place, and finish the sequence where it ends; returns the token.

    Raises whatever the matcher raises; `InternalError` where the matcher refuses what its mask allowed.
    """
    matcher = sequence.matcher
    if matcher is None:
        sequence.append(token_id)
        has_ended = token_id in eos_token_ids or token_id in sequence.params.stop_token_ids
    else:
        token_id = _accept(sequence, matcher, token_id, is_closing)
        sequence.append(token_id)
        has_ended = sequence.tokens_to_end == 0
    if has_ended:
        sequence.finish("stop")
    elif sequence.remaining <= 0:
        sequence.finish("length")
    return token_id


def jump(sequence: Sequence) -> list[int]:
    """Append the tokens that are certain without the model; returns them.

    None where unmasked log-probabilities were asked for: those need the model.
    """
    matcher, added = sequence.matcher, list[int]()
    if matcher is None or sequence.params.unmasked_logprobs:
        return added
    while sequence.finish_reason is None:
        if must_close(sequence, matcher):
            added.append(advance(sequence, matcher.closing_token(), (), is_closing=True))
            continue
        forced = _force(sequence, matcher)
        if not forced:
            break
        added += forced
    return added


def _force(sequence: Sequence, matcher: MatcherLike) -> list[int]:
    """Append what the grammar forces, as far as the budget holds the shortest completion after it."""
    added = []
    for token in matcher.forced_tokens():
        to_end = _accepted(matcher, token)
        if to_end > sequence.remaining - 1:
            matcher.rollback(1)
            break
        sequence.tokens_to_end = to_end
        sequence.append(token)
        sequence.usage.forced_tokens += 1
        added.append(token)
        if to_end == 0:
            sequence.finish("stop")
            break
    return added


def must_close(sequence: Sequence, matcher: MatcherLike) -> bool:
    """Whether only the shortest completion is left, by the budget or by the time limit."""
    to_end = sequence.tokens_to_end
    if to_end is None:
        to_end = sequence.tokens_to_end = matcher.min_tokens_to_end
    return to_end >= sequence.max_tokens - sequence.num_output or sequence.is_late


def _accept(sequence: Sequence, matcher: MatcherLike, token_id: int, is_closing: bool) -> int:
    to_end = _accepted(matcher, token_id)
    if to_end > sequence.remaining - 1 and not is_closing:
        matcher.rollback(1)
        token_id, is_closing = matcher.closing_token(), True
        to_end = _accepted(matcher, token_id)
    sequence.tokens_to_end = to_end
    if is_closing:
        sequence.usage.closed_by_budget = True
        sequence.usage.forced_tokens += 1
    return token_id


def _accepted(matcher: MatcherLike, token_id: int) -> int:
    """Accept a token; the most that a shortest completion takes from there, 0 at the end."""
    if not matcher.accept_token(token_id):
        raise InternalError(f"the grammar refuses token {token_id}, which its mask or its closing path allowed")
    to_end = matcher.min_tokens_to_end
    # Where only the end can follow it takes one token, EOS.
    return 0 if to_end <= 1 and (matcher.is_terminated or matcher.is_complete) else to_end
