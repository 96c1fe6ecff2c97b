"""From the body of a text completion to jobs, one a prompt: honoured or refused by name, never dropped."""

from __future__ import annotations

from api.compile_options import options_of
from api.constraints import schema_of
from api.sampling import params_of
from api.service import Job
from constrained.errors import RequestError, UnsupportedFieldError
from schemas.completions import COMPLETIONS_NEUTRAL, MOST_PROMPTS, CompletionRequest

DEFAULT_MAX_TOKENS = 16
"""That of the official API."""


def jobs_of(body: CompletionRequest) -> list[Job]:
    """The jobs that a body asks for; `UnsupportedFieldError` for what this version cannot honour."""
    for name, neutral in COMPLETIONS_NEUTRAL.items():
        if getattr(body, name) not in neutral:
            raise UnsupportedFieldError(f"{name} is not supported by this version; leave it out", name)
    num_choices = body.n or 1
    if body.best_of not in (None, num_choices):
        raise UnsupportedFieldError("best_of other than n is not supported by this version; leave it out", "best_of")
    if body.echo and body.logprobs is not None:
        raise UnsupportedFieldError("logprobs of the prompt are not given; send echo false", "echo")
    schema = schema_of(body)
    params = params_of(body, body.max_tokens or DEFAULT_MAX_TOKENS, body.logprobs)
    options = options_of(body.structured_outputs, schema, with_tools=False)
    return [
        Job(prompt, params, num_choices, schema, options, schema_in_prompt=body.schema_in_prompt) for prompt in _prompts(body)
    ]


def _prompts(body: CompletionRequest) -> list[str]:
    prompts = body.prompt if isinstance(body.prompt, list) else [body.prompt]
    if not prompts or None in prompts:
        raise RequestError("A prompt is needed", "prompt")
    if len(prompts) > MOST_PROMPTS:
        raise RequestError(f"At most {MOST_PROMPTS} prompts are taken, found {len(prompts)}", "prompt")
    if any(isinstance(prompt, int | list) for prompt in prompts):
        raise UnsupportedFieldError("prompts of token ids are not supported by this version; send text", "prompt")
    if not all(isinstance(prompt, str) for prompt in prompts):
        raise RequestError("A prompt is a string, or a list of strings", "prompt")
    return prompts
