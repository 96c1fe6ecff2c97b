"""Dates, times and durations of RFC 3339, by the real calendar and with leap seconds only where they can be."""

from __future__ import annotations

from collections.abc import Iterable

from constrained.grammar.formats.abnf import ANYTHING, DIGIT, any_of, exactly, optional, repeated
from constrained.grammar.formats.format import Format, Strings

_MULTIPLE_OF_4 = any_of("0[48]", "[2468][048]", "[13579][26]")  # two digits, 00 aside
_NO_MULTIPLE_OF_4 = any_of("[02468][1235679]", "[13579][01345789]")
_LONG_MONTH = any_of("0[13578]", "1[02]")
_SHORT_MONTH = any_of("0[469]", "11")
_FIRST_28 = any_of("0[1-9]", "1[0-9]", "2[0-8]")

# RFC 3339, appendix C: every fourth year, of the centuries only every fourth. The year 0000 is one.
_YEAR = exactly(DIGIT, 4)
_LEAP_YEAR = any_of(exactly(DIGIT, 2) + _MULTIPLE_OF_4, any_of("00", _MULTIPLE_OF_4) + "00")
_COMMON_YEAR = any_of(exactly(DIGIT, 2) + _NO_MULTIPLE_OF_4, _NO_MULTIPLE_OF_4 + "00")

# RFC 3339, section 5.7: the days of each month.
_MONTH_DAY = any_of(
    f"{_LONG_MONTH}-{any_of(_FIRST_28, '29', '3[01]')}",
    f"{_SHORT_MONTH}-{any_of(_FIRST_28, '29', '30')}",
    f"02-{_FIRST_28}",
)
_FULL_DATE = any_of(f"{_YEAR}-{_MONTH_DAY}", f"{_LEAP_YEAR}-02-29")
_LAST_OF_MONTH = any_of(
    f"{_YEAR}-{any_of(f'{_LONG_MONTH}-31', f'{_SHORT_MONTH}-30')}",
    f"{_LEAP_YEAR}-02-29",
    f"{_COMMON_YEAR}-02-28",
)
_FIRST_OF_MONTH = f"{_YEAR}-{any_of('0[1-9]', '1[0-2]')}-01"

# RFC 3339, section 5.6.
_HOUR = any_of("[01][0-9]", "2[0-3]")
_MINUTE = "[0-5][0-9]"
_SECOND = "[0-5][0-9]"
_SECFRAC = optional(rf"\.{DIGIT}+")
_OFFSET = any_of("[Zz]", f"[+\\-]{_HOUR}:{_MINUTE}")
_UTC = r"(?:[Zz]|[+\-]00:00)"
_FULL_TIME = f"{_HOUR}:{_MINUTE}:{any_of(_SECOND, '60')}{_SECFRAC}{_OFFSET}"

# RFC 3339, section 5.7: a leap second is 23:59:60 in UTC, and ends a month. East of Greenwich it is the next day by then.
_LEAP = ":60" + _SECFRAC
_QUARTER, _DAY = 15, 24 * 60


def _leap_times(offsets: Iterable[int]) -> str:
    """The local times of 23:59:60 in UTC at these offsets, in minutes, each with its offset."""
    clocks: dict[int, dict[int, list[str]]] = {}
    for offset in offsets:
        hour, minute = divmod((_DAY - 1 + offset) % _DAY, 60)
        sign = "-" if offset < 0 else r"\+"
        spelled = f"{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}" if offset else _UTC
        clocks.setdefault(hour, {}).setdefault(minute, []).append(spelled)
    return any_of(
        *(
            f"{hour:02}:{any_of(*(f'{minute:02}{_LEAP}{any_of(*spelled)}' for minute, spelled in minutes.items()))}"
            for hour, minutes in clocks.items()
        )
    )


_ORDINARY_TIME = f"{_HOUR}:{_MINUTE}:{_SECOND}{_SECFRAC}{_OFFSET}"
_SAME_DAY_QUARTERS = range(_QUARTER - _DAY, 1, _QUARTER)
_NEXT_DAY_QUARTERS = range(_QUARTER, _DAY, _QUARTER)
_QUARTERS_ONLY = (
    "a leap second is held valid at offsets of whole quarters of an hour only, as all legal times have had since there are "
    "leap seconds: one at any other offset takes ten thousand states"
)

# All leap seconds, by relations of some hundred states each that restrict what already is a `full-time` or a `date-time`.
_ORDINARY = exactly("[^]", 6) + _SECOND + ANYTHING


def _offsets(minus: str, plus: str, utc: bool) -> str:
    return any_of(f"-{minus}", f"\\+{plus}", *(["[Zz]"] if utc else []))


def _leap_hour(hour: int) -> str:
    """Local hour and offset hour of 23:59:60 in UTC; at minute 59 the offset is whole hours, otherwise it carries."""
    behind = f"{23 - hour:02}{ANYTHING}"
    whole = f"59{_LEAP}{_offsets(behind, f'{(hour + 1) % 24:02}{ANYTHING}', utc=hour == 23)}"
    broken = f"{any_of('[0-4][0-9]', '5[0-8]')}{_LEAP}{_offsets(behind, f'{hour:02}{ANYTHING}', utc=False)}"
    return f"{hour:02}:{any_of(whole, broken)}"


def _leap_minute(minute: int) -> str:
    """Local minute and offset minute of 23:59:60 in UTC."""
    hour = exactly("[^]", 3)
    return f"{minute:02}{_LEAP}{_offsets(f'{hour}{59 - minute:02}', f'{hour}{(minute + 1) % 60:02}', utc=minute == 59)}"


_LEAP_SECOND = (
    any_of(_ORDINARY, *(_leap_hour(hour) for hour in range(24))),
    any_of(_ORDINARY, exactly("[^]", 3) + any_of(*(_leap_minute(minute) for minute in range(60)))),
)
_NEXT_DAY = r"\+" + any_of("00:(?:0[1-9]|[1-5][0-9])", any_of("0[1-9]", "[12][0-9]") + ANYTHING)
_LEAP_DAY = any_of(
    exactly("[^]", 11) + _ORDINARY,
    f"{_LAST_OF_MONTH}[^]{{6}}{_LEAP}{any_of(_UTC, f'-{ANYTHING}')}",
    f"{_FIRST_OF_MONTH}[^]{{6}}{_LEAP}{_NEXT_DAY}",
)

# RFC 3339, appendix A: the grammar of ISO 8601, whose designators are capital letters.
_NUMBER = repeated(DIGIT, 1)
_DUR_MINUTE = f"{_NUMBER}M{optional(f'{_NUMBER}S')}"
_DUR_HOUR = f"{_NUMBER}H{optional(_DUR_MINUTE)}"
_DUR_TIME = "T" + any_of(_DUR_HOUR, _DUR_MINUTE, f"{_NUMBER}S")
_DUR_DAY = f"{_NUMBER}D"
_DUR_MONTH = f"{_NUMBER}M{optional(_DUR_DAY)}"
_DUR_YEAR = f"{_NUMBER}Y{optional(_DUR_MONTH)}"
_DUR_DATE = any_of(_DUR_DAY, _DUR_MONTH, _DUR_YEAR) + optional(_DUR_TIME)

FORMATS = (
    Format("date", "RFC 3339, section 5.6, full-date", (_FULL_DATE,)),
    Format(
        "time",
        "RFC 3339, section 5.6, full-time",
        (any_of(_ORDINARY_TIME, _leap_times((*_SAME_DAY_QUARTERS, *_NEXT_DAY_QUARTERS))),),
        wider=Strings((_FULL_TIME, *_LEAP_SECOND)),
        why=_QUARTERS_ONLY,
    ),
    Format(
        "date-time",
        "RFC 3339, section 5.6, date-time",
        (
            any_of(
                f"{_FULL_DATE}[Tt]{_ORDINARY_TIME}",
                f"{_LAST_OF_MONTH}[Tt]{_leap_times(_SAME_DAY_QUARTERS)}",
                f"{_FIRST_OF_MONTH}[Tt]{_leap_times(_NEXT_DAY_QUARTERS)}",
            ),
        ),
        wider=Strings(
            (f"{_FULL_DATE}[Tt]{_FULL_TIME}", *(exactly("[^]", 11) + relation for relation in _LEAP_SECOND), _LEAP_DAY),
        ),
        why=_QUARTERS_ONLY,
    ),
    Format("duration", "RFC 3339, appendix A, duration", ("P" + any_of(_DUR_DATE, _DUR_TIME, f"{_NUMBER}W"),)),
)
