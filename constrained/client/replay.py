"""A stream that was recorded, read again: its bytes in, the document out. No network."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from constrained.client.run import Disconnected, Run
from constrained.client.target import Target
from constrained.client.wire import FORMATS, Via


def replay(chunks: Iterable[bytes], model: Any = True, *, via: Via = "sse", choice: int = 0) -> Any:
    """The answer that a recorded event stream gives, in any chunking; raises what reading it live would have raised.

    For logs, tests and benchmarks: this is all that a client does with a stream but for the network.
    """
    run: Run[Any] = Run(Target(model))
    events = FORMATS[via]()
    for chunk in chunks:
        run.feed(events.feed(chunk))
        while run.step():
            pass
    run.end(Disconnected())
    return run.final(choice)
