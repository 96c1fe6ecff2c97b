"""Lark grammars: texts against Lark's own parser, masks against brute force, walks that always end well."""

from __future__ import annotations

import json
import random

import jsonschema
import lark
import pytest

from constrained import compile_json_schema, compile_lark
from constrained.errors import EmptyLanguageError, GrammarError, UnsatisfiableSchemaError
from constrained.text_grammars import TextGrammar
from tests.grammars import accepts, awkward_vocabulary, byte_vocabulary, random_choice
from tests.oracles import allowed_by_mask, allowed_by_trying, close, walk

ARITHMETIC = r"""
?start: sum
?sum: product | sum "+" product -> add | sum "-" product
?product: atom | product "*" atom
?atom: NUMBER | "-" atom | NAME | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""
JSON = r"""
?start: value
?value: object | array | string | SIGNED_NUMBER -> number | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: string ":" value
string: ESCAPED_STRING
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""
SQL = r"""
start: "SELECT"i columns "FROM"i NAME ("WHERE"i condition)? ("ORDER"i "BY"i NAME ["DESC"i])? ";"?
columns: "*" | NAME ("," NAME)*
?condition: condition ("AND"i | "OR"i) condition | NAME ("=" | "<" | ">") (NUMBER | STRING) | "(" condition ")"
NAME: /[a-z]\w*/
NUMBER: /\d+/
STRING: /'[^']*'/
%ignore /\s+/
"""
PYTHON = r"""
start: (_NL | statement)*
statement: simple _NL | "if" test ":" simple _NL | "def" NAME "(" [NAME ("," NAME)*] ")" ":" simple _NL
simple: "return" [test] | "pass" | test | NAME "=" test
?test: or_test ["if" or_test "else" test] | "lambda" NAME ":" test
?or_test: and_test | or_test "or" and_test
?and_test: not_test | and_test "and" not_test
?not_test: "not" not_test | comparison
?comparison: sum | comparison ("<" | "==" | "in" | "not" "in") sum
?sum: atom_expr | sum ("+" | "-") atom_expr
?atom_expr: atom | atom_expr "(" [test ("," test)*] ")" | atom_expr "[" test "]" | atom_expr "." NAME
?atom: "(" test ")" | "[" [test ("," test)*] "]" | NAME | NUMBER | STRING | "None"
NAME: /[^\W\d]\w*/
NUMBER: /\d+(\.\d+)?/
STRING: /"[^"\\\n]*(\\.[^"\\\n]*)*"/
_NL: /(\r?\n[\t ]*)+/
%ignore /[\t ]+/
%ignore /#[^\n]*/
"""
# Each with the characters that random texts are made of.
GRAMMARS = {
    "arithmetic": (ARITHMETIC, "1a+-*() ."),
    "json": (JSON, '{}[]:,"a1 \\'),
    "sql": (SQL, "SELECTselectFROM*a=1' ;"),
    # No comments: lark ends one only at its longest, here any of its matches may end it.
    "python": (PYTHON, "ifab 1=()\n:"),
    "ambiguous": ('start: start start | "a"', "ab"),
    "hidden left recursion": ('start: b start "x" | "y"\nb: | "b"', "bxy"),
    "indirect": ('start: x\nx: y "1" | "n"\ny: z "2" | x "3"\nz: x | y | "é"', "123né"),
    "palindromes": ('start: "a" start "a" | "b" start "b" | "a" | "b" |', "ab"),
    "right recursion": ('start: "a" start | "b" start "c" |', "abc"),
    "keywords": ('start: s (";" s)*\ns: "if" N "then" s | N "=" N | N\nN: /[a-z]+/\n%ignore " "', "ifthen=; x"),
    "lazy": (r'start: (S | C | "x")+' + "\n" + r'S: /".*?(?<!\\)(\\\\)*?"/' + '\nC: "/*" /(.|\\n)*?/ "*/"', '"\\/*x'),
    "templates": ('start: "[" _s{i, ","} "]"\n_s{x, y}: x (y x)*\ni: "a"~2..3 | "b"i ["c"]', "[],abBc"),
    "ranges": ('start: T+\nT.2: "a".."c" ("1".."3")?\n%ignore /_+/', "abcd123_"),
    "nullable": ('start: a b a\na: "x"?\nb: (a "y")*', "xy"),
    "nothing": ("start: ", "a"),
    "many optional": ("start: " + " ".join(f"x{i}" for i in range(9)) + "".join(f'\nx{i}: "{i}"?' for i in range(9)), "0123"),
}


def takes(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


def random_text(grammar: TextGrammar, alphabet: str, pick: random.Random) -> str:
    """A text of the language over an alphabet, or nearly one."""
    if pick.random() < 0.4:
        return "".join(pick.choices(alphabet, k=pick.randrange(9)))
    matcher = grammar.matcher()
    for _ in range(pick.randrange(14)):
        options = [byte for byte in alphabet.encode() if matcher.fork().accept_token(byte)]
        if options:
            matcher.accept_token(pick.choice(options))
    close(matcher)
    text = matcher.text.decode()
    at = pick.randrange(len(text) + 1)
    return text if pick.random() < 0.5 else text[:at] + pick.choice(alphabet) + text[at + 1 :]


@pytest.mark.parametrize("name", GRAMMARS)
def test_texts_are_taken_as_lark_takes_them(name: str) -> None:
    text, alphabet = GRAMMARS[name]
    pick, grammar = random.Random(name), compile_lark(text, byte_vocabulary())
    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete")
    for _ in range(120):
        candidate = random_text(grammar, alphabet, pick)
        assert accepts(grammar, candidate) == takes(parser, candidate), candidate


@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_are_what_brute_force_finds_and_walks_end_in_what_lark_takes(name: str) -> None:
    text, _ = GRAMMARS[name]
    vocabulary, pick = awkward_vocabulary(), random.Random(name)
    grammar = compile_lark(text, vocabulary)
    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete")
    for _ in range(6):
        found = walk(grammar, vocabulary, pick, 25)
        assert takes(parser, found), found


def random_grammar(pick: random.Random) -> str:
    """A few rules over a few terminals: empty, recursive and ambiguous as they come."""
    names = ["start", "p", "q"]
    symbols = [*names, '"a"', '"ab"', "T", "U"]

    def alternative() -> str:
        return " ".join(pick.choices(symbols, k=pick.randrange(4)))

    rules = [f"{name}: {' | '.join(dict.fromkeys(alternative() for _ in range(pick.randint(1, 3))))}" for name in names]
    return "\n".join([*rules, "T: /b+/", 'U: "c" | "ca"', *(['%ignore "_"'] if pick.random() < 0.5 else []), ""])


@pytest.mark.parametrize("seed", range(60))
def test_random_grammars(seed: int) -> None:
    pick = random.Random(seed)
    text = random_grammar(pick)
    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete")
    vocabulary = awkward_vocabulary()
    try:
        grammar = compile_lark(text, vocabulary)
    except EmptyLanguageError:
        assert not any(takes(parser, candidate) for candidate in ("", "a", "ab", "b", "c", "aba", "abc", "bab"))
        return
    for _ in range(3):
        walk(grammar, vocabulary, pick, 12)
    for _ in range(25):
        candidate = random_text(grammar, "abc_", pick)
        assert accepts(grammar, candidate) == takes(parser, candidate), (text, candidate)


def test_an_ambiguous_grammar_keeps_few_threads() -> None:
    matcher = compile_lark('start: start start | "a" | "(" start ")"', byte_vocabulary()).matcher()
    assert matcher.accept_bytes(b"(a" * 300)
    assert matcher.accept_bytes(b"a" * 300 + b")" * 200)
    assert len(matcher._state.threads) < 10
    assert matcher.min_tokens_to_end == 101
    assert not matcher.is_accepting


def test_right_recursion_needs_no_stack() -> None:
    grammar = compile_lark('start: "a" start | "a"', byte_vocabulary())
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b"a" * 5)
    num_states = grammar._engine.automaton.num_states
    assert matcher.accept_bytes(b"a" * 500)
    assert grammar._engine.automaton.num_states == num_states


def test_deep_nesting_is_balanced() -> None:
    grammar = compile_lark('start: "(" start ")" | "[" start "]" | "x"', byte_vocabulary())
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b"([" * 2000)
    assert matcher.min_tokens_to_end == 4002
    assert matcher.accept_bytes(b"x" + b"])" * 2000)
    assert matcher.is_complete


def test_forced_bytes_and_rollback() -> None:
    matcher = compile_lark('start: "SELECT " ("name" | "null") " FROM t"', awkward_vocabulary()).matcher()
    assert matcher.forced_bytes() == b"SELECT n"
    assert matcher.accept_bytes(b"SELECT na")
    row = matcher.mask_row().id
    assert matcher.forced_bytes() == b"me FROM t"
    assert matcher.accept_bytes(b"me FROM t")
    assert matcher.is_complete
    matcher.rollback(1)
    assert matcher.mask_row().id == row


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": {"type": "null"},
}
CALLS = r"""
start: call (_NL call)*
call: NAME "(" (PERSON | %json {"type": ["integer", "string", "null"]}) ")" ("#" /[^\n]*/)?
NAME: /[a-z]+/
_NL: "\n"
%ignore " "
"""


def test_a_json_schema_as_a_terminal() -> None:
    grammar = compile_lark(CALLS, byte_vocabulary(), schemas={"PERSON": PERSON})
    for text in ('f({"name": "a)", "n": 1})', 'f ( 12 )#x\ng("é\\"")', 'f({"n":1,"x":null,"y":null})', "f(null)"):
        assert accepts(grammar, text), text
    for text in ('f({"name": "a"})', "f(1.5)", "f()", 'f({"n":1,"x":null,"x":null})', 'f({"n":1)'):
        assert not accepts(grammar, text), text


def test_masks_around_a_json_schema() -> None:
    vocabulary, pick = awkward_vocabulary(), random.Random(1)
    grammar = compile_lark(CALLS, vocabulary, schemas={"PERSON": PERSON})
    for _ in range(25):
        text = walk(grammar, vocabulary, pick, 40)
        assert text.lstrip().startswith(tuple("abcdefghijklmnopqrstuvwxyz"))


def test_a_schema_alone_is_the_schema() -> None:
    vocabulary, pick = awkward_vocabulary(), random.Random(2)
    alone = compile_lark("start: P", vocabulary, schemas={"P": PERSON})
    schema = compile_json_schema(PERSON, vocabulary)
    for _ in range(10):
        left, right = alone.matcher(), schema.matcher()
        for _ in range(pick.randrange(30)):
            assert allowed_by_mask(left, vocabulary) == allowed_by_mask(right, vocabulary), left.text
            token = random_choice(right, vocabulary, pick)
            assert left.accept_token(token)
            assert right.accept_token(token)
            if right.is_terminated:
                break
        close(left)
        jsonschema.validate(json.loads(left.text), PERSON)


def test_masks_at_the_very_end_of_a_document() -> None:
    vocabulary = awkward_vocabulary()
    grammar = compile_lark('start: %json {"type": "object"} "," %json {"type": ["string", "number"]} "x"', vocabulary)
    for begun in (b'{"a":1', b'{"a":{"b":""', b"{},", b'{},"', b"{},1", b"{},0.5"):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(begun)
        assert allowed_by_mask(matcher, vocabulary) == allowed_by_trying(matcher, vocabulary), begun


def test_errors_of_schemas_and_of_empty_languages() -> None:
    vocabulary = byte_vocabulary()
    with pytest.raises(UnsatisfiableSchemaError):
        compile_lark("start: %json false", vocabulary)
    with pytest.raises(EmptyLanguageError, match="start"):
        compile_lark('start: "a" start', vocabulary)
    with pytest.raises(GrammarError):
        compile_lark("start: nothing", vocabulary)


def test_another_start() -> None:
    grammar = compile_lark('start: "a"\nother: start "b"', byte_vocabulary(), start="other")
    assert accepts(grammar, "ab")
    assert not accepts(grammar, "a")


def test_items_that_must_differ_are_refused_inside_a_grammar() -> None:
    with pytest.raises(GrammarError, match="differ"):
        compile_lark("start: LIST", byte_vocabulary(), schemas={"LIST": {"type": "array", "uniqueItems": True}})
