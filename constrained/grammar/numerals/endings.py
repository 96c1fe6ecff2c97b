"""The shortest way to end a number: searched by how many digits of each run it takes, never digit by digit."""

from __future__ import annotations

from constrained.grammar.numerals.numeral import by_length
from constrained.grammar.numerals.prefix import FRACTION, POINT, WHOLE, ZERO, Prefix


def shortest_ending(prefix: Prefix) -> bytes:
    """The shortest bytes that end a number which can be ended, the first in byte order among those."""
    if prefix.accepts:
        return b""
    best = _Best()
    _plain(prefix, best)
    if prefix.scales:
        if prefix.n == 0:
            _first_digits(prefix, best)
        else:
            _scaled(prefix, best)
    assert best.text is not None, "a prefix that is alive has an end"
    return best.text


class _Best:
    """The best ending so far; all that are offered stand behind `begun`."""

    def __init__(self) -> None:
        self.text: bytes | None = None
        self.begun = b""

    def is_beaten_by(self, length: int) -> bool:
        """Whether an ending of this length could still be better, or come before in byte order."""
        return self.text is None or len(self.begun) + length <= len(self.text)

    def offer(self, text: bytes) -> None:
        text = self.begun + text
        if self.text is None or by_length(text) < by_length(self.text):
            self.text = text


def _written(prefix: Prefix, digits: int, whole: int, fraction: int) -> bytes:
    """`digits` as what follows the prefix: so many before the point, so many behind it."""
    text = str(digits).rjust(whole + fraction, "0") if whole + fraction else ""
    point = "." if fraction and prefix.phase <= WHOLE else ""
    return f"{text[:whole]}{point}{text[whole:]}".encode()


def _len(prefix: Prefix, whole: int, fraction: int) -> int:
    return whole + fraction + (1 if fraction and prefix.phase <= WHOLE else 0)


def _plain(prefix: Prefix, best: _Best) -> None:
    """Endings without an exponent."""
    find, n = prefix.side.magnitudes.find, prefix.n
    least = int(prefix.phase == POINT)
    for whole in prefix.more_plain:
        if not best.is_beaten_by(_len(prefix, whole, least)):
            return
        finest = 10 ** (whole + prefix.left)
        if find(n * finest, (n + 1) * finest - 1, -(prefix.fraction + prefix.left)) is None:
            continue
        for fraction in range(least, prefix.left + 1):
            if not best.is_beaten_by(_len(prefix, whole, fraction)):
                break
            size = 10 ** (whole + fraction)
            found = find(n * size, (n + 1) * size - 1, -(prefix.fraction + fraction))
            if found is not None:
                best.offer(_written(prefix, found - n * size, whole, fraction))
                break


def _scaled(prefix: Prefix, best: _Best) -> None:
    """Endings with an exponent, behind significant digits."""
    reach, n = prefix.side.magnitudes.reach, prefix.n
    splits = prefix.more_scaled
    anywhere = prefix.powers(0)[0], prefix.powers(splits[-1])[1]
    for more in range(int(prefix.phase == POINT), splits[-1] + prefix.left + 1):
        if not best.is_beaten_by(more + 2):
            return
        if not any(reach(n, more, anywhere)):
            continue
        for whole in range(max(0, more - prefix.left), min(more, splits[-1]) + 1):
            for first, last in reach(n, more, prefix.powers(whole)):
                size = 10**more
                found = prefix.side.magnitudes.find(n * size, (n + 1) * size - 1, first - more)
                assert found is not None, "a run of powers has a member"
                shift = prefix.fraction - whole
                digits = _written(prefix, found - n * size, whole, more - whole)
                best.offer(digits + b"e" + _shortest_integer(first + shift, last + shift))


def _first_digits(prefix: Prefix, best: _Best) -> None:
    """Endings with an exponent where there is nothing but zeros yet, and zero is not meant."""
    point = b"." if prefix.phase == ZERO else b""
    for zeros in range(prefix.left):
        best.begun = b""
        if not best.is_beaten_by(len(point) + zeros + 3):
            return
        for digit in range(1, 10):
            best.begun = point + b"0" * zeros + str(digit).encode()
            _scaled(prefix._replace(phase=FRACTION, n=digit, fraction=prefix.fraction + zeros + 1), best)


def _shortest_integer(first: int, last: int) -> bytes:
    """The shortest text of an integer in a range."""
    return b"0" if first <= 0 <= last else str(first if first > 0 else last).encode()
