"""Context-free grammars over terminals that are string languages: what regex, choice and Lark grammars become.

From the bottom: `grammar` (the data), `normal_form` (useful, without empty rules), `corners` (what may come next, by left
corners, so that left recursion is no matter) and `words` (shortest texts). They know neither bytes nor tokens.
"""

from constrained.grammar.context_free.corners import Corners
from constrained.grammar.context_free.grammar import Grammar, SchemaTerminal, Terminal
from constrained.grammar.context_free.normal_form import NormalForm, normal_form
from constrained.grammar.context_free.words import Words

__all__ = ["Corners", "Grammar", "NormalForm", "SchemaTerminal", "Terminal", "Words", "normal_form"]
