"""String languages over Unicode code points: regular expressions, finite sets and lengths under one Boolean algebra.

`Language` is the whole interface; `steps` walks it as an automaton. The modules, from the bottom: `charsets`, `terms`,
`normal` and `boolean` (normal form), `clock`, `context` (anchors and lookarounds), `derive` (steps), `outlook` (what is
seen without a step), `explore` (emptiness, shortest strings), `language`, and beside it `classes`, `properties` and
`patterns`, which read ECMA-262.
"""

from constrained.grammar.language.clock import check_time, time_limit
from constrained.grammar.language.errors import LanguageFuelError, LanguageTimeError, PatternError
from constrained.grammar.language.explore import state_limit
from constrained.grammar.language.language import ANYTHING, EMPTY, NOTHING, Language, from_ranges, from_values, of_length
from constrained.grammar.language.patterns import from_pattern

__all__ = [
    "ANYTHING",
    "EMPTY",
    "NOTHING",
    "Language",
    "LanguageFuelError",
    "LanguageTimeError",
    "PatternError",
    "check_time",
    "from_pattern",
    "from_ranges",
    "from_values",
    "of_length",
    "state_limit",
    "time_limit",
]
