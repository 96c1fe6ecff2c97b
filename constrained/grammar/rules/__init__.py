"""The rules of JSON Schema's keywords, one small function each; `constrained.grammar.keywords` has the table."""
