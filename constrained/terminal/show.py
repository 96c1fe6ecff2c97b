"""A form shown in a console while it fills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.live import Live

from constrained.stream import Op
from constrained.terminal.form import Form

FRAMES_PER_S = 20
_ROWS_KEPT_FREE = 3

Show = Callable[[Iterable[Op]], None]


@contextmanager
def live(form: Form, console: Console) -> Iterator[Show]:
    """Gives a function that takes ops and shows the form; at the end the whole form stays on the console.

    In a terminal it is redrawn at most `FRAMES_PER_S` times a second; anywhere else only the end is printed. Where the
    block raises, what was open is marked as interrupted.
    """
    try:
        if console.is_terminal:
            with Live(console=console, auto_refresh=False, transient=True) as screen:
                yield _drawing(form, console, screen)
        else:
            yield lambda ops: _apply(form, ops)
    except BaseException:
        form.interrupt()
        raise
    finally:
        console.print(form.render())


def _drawing(form: Form, console: Console, screen: Live) -> Show:
    drawn_at = 0.0

    def show(ops: Iterable[Op]) -> None:
        nonlocal drawn_at
        _apply(form, ops)
        if monotonic() - drawn_at >= 1 / FRAMES_PER_S:
            screen.update(form.render(max(1, console.height - _ROWS_KEPT_FREE)), refresh=True)
            drawn_at = monotonic()

    show(())
    return show


def _apply(form: Form, ops: Iterable[Op]) -> None:
    for op in ops:
        form.apply(op)
