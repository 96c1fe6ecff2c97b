"""The automaton of grammars over raw text: terminals without a lexer, over sets of stacks.

A text is in the language where some split of it into terminals parses, whatever a lexer would make of it. From the bottom:
`stacks` (sets of stacks as integers), `scan` (kernels), `lexemes` (terminals byte by byte), `documents` (JSON as one of
them), `machine` (states), `parts` and `masks` (rows), `closing` (shortest ends).
"""
