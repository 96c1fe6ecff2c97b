"""Checks of what applies in place: references, unions whose members are plain, and objects that are put together."""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from constrained.grammar.plain_values import KINDS, Step, are_names, can_be_said, kind_of

if TYPE_CHECKING:
    from constrained.grammar.plain import Plainness

MAX_ARMS = 20
MAX_DEPTH = 8  # objects inside each other that are put together, and references on the way to one
_REFERENCE = frozenset(("$ref",))
_UNIONS = {
    "anyOf": frozenset(("anyOf", "type")),
    "oneOf": frozenset(("oneOf", "type")),
    "allOf": frozenset(("allOf",)),
}
_IN_PLACE = frozenset(("anyOf", "oneOf", "allOf"))
_NOTHING: dict[str, Any] = {}
_NO_NAMES: list[str] = []
Scalars = frozenset[tuple[str | None, Any]]
_PARTS = frozenset(("type", "properties", "required", "additionalProperties", "allOf", "$ref"))


def ref(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    """`$ref` alone: what it leads to is plain."""
    name = contents["$ref"]
    if type(name) is not str or not (proof.draft <= 7 or proof.asserts_only(contents, _REFERENCE)):
        return False
    target = proof.target(name, step)
    return target is not None and proof.is_plain((target, step, ("$ref",)))


def any_of(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    """`anyOf`, alone or beside a type that all members may have: they are plain."""
    members = contents["anyOf"]
    if type(members) is not list or not 0 < len(members) <= MAX_ARMS:
        return False
    marks = [_mark(proof, member, step) for member in members] if "type" in contents else []
    return _may_be(contents, marks) and _are_plain(proof, contents, step, "anyOf")


def one_of(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    """`oneOf`, alone or beside a type that all members may have: they are plain, and each two of them exclude each other."""
    members = contents["oneOf"]
    if type(members) is not list or not 0 < len(members) <= MAX_ARMS:
        return False
    marks = [_mark(proof, member, step) for member in members]
    is_apart = all(_differ(a, b) for a, b in combinations(marks, 2))
    return is_apart and _may_be(contents, marks) and _are_plain(proof, contents, step, "oneOf")


def _are_plain(proof: Plainness, contents: dict[str, Any], step: Step, keyword: str) -> bool:
    if not proof.asserts_only(contents, _UNIONS[keyword]):
        return False
    return all(proof.is_plain((member, step, (keyword, index))) for index, member in enumerate(contents[keyword]))


class _Mark(NamedTuple):
    """What tells a union's member from others.

    Kinds that its values may be of (and are, where `is_sure`), scalars that it lists itself (None: it lists none), scalars that
    its required properties must be, which these are, and all properties that it may have (None: any).
    """

    kinds: frozenset[str]
    is_sure: bool
    values: Scalars | None
    tags: Mapping[str, Scalars]
    required: list[str]
    names: Set[str] | None


_ANY = _Mark(frozenset(KINDS.values()), False, None, {}, [], None)


def _mark(proof: Plainness, member: Any, step: Step) -> _Mark:
    """As much as is plain to see; a member is legal where it is plain, which is asked elsewhere."""
    for _ in range(MAX_DEPTH):
        if type(member) is not dict or type(name := member.get("$ref")) is not str:
            break
        member = proof.target(name, step)
    if type(member) is not dict or "$ref" in member:
        return _ANY
    kinds, values, is_sure = _ANY.kinds, _scalars(proof, member), _IN_PLACE.isdisjoint(member)
    if "type" in member:
        names = member["type"] if type(member["type"]) is list else [member["type"]]
        kinds = frozenset(KINDS.get(name, "") for name in names) if are_names(names) else kinds
    if values:
        kinds &= {kind for kind, _ in values}
    properties, required = member.get("properties", _NOTHING), member.get("required", _NO_NAMES)
    if type(properties) is not dict or type(required) is not list or not are_names(required):
        return _Mark(kinds, is_sure, values, {}, [], None)
    tags = {name: found for name in required if (found := _scalars(proof, properties.get(name)))}
    is_closed = member.get("additionalProperties") is False and "patternProperties" not in member
    return _Mark(kinds, is_sure, values, tags, required, properties.keys() if is_closed else None)


def _scalars(proof: Plainness, contents: Any) -> Scalars | None:
    """The scalars that `const` or `enum` lists; None where there is neither, or another value."""
    if type(contents) is not dict or "$ref" in contents:
        return None
    values: Any = [contents["const"]] if proof.draft > 4 and "const" in contents else contents.get("enum")
    if type(values) is not list:
        return None
    kinds = list(map(kind_of, values))
    return None if None in kinds else frozenset(zip(kinds, values, strict=True))


def _differ(a: _Mark, b: _Mark) -> bool:
    """Whether no value is of both, as `disjoint` sees it too."""
    kinds = a.kinds & b.kinds
    if not kinds or (a.values is not None and b.values is not None and a.values.isdisjoint(b.values)):
        return True
    if kinds != {"object"}:
        return False
    if any(name in b.tags and values.isdisjoint(b.tags[name]) for name, values in a.tags.items()):
        return True
    return any(one.names is not None and not one.names >= set(other.required) for one, other in ((a, b), (b, a)))


def _may_be(contents: dict[str, Any], marks: list[_Mark]) -> bool:
    """Whether each member may be of the type beside the union, where there is one."""
    if "type" not in contents:
        return True
    kind = KINDS.get(name) if type(name := contents["type"]) is str else None
    return all(mark.is_sure and kind in mark.kinds for mark in marks)


def all_of(proof: Plainness, contents: dict[str, Any], step: Step) -> bool:
    """`allOf`: one plain member alone, or open objects that have no property in common."""
    members = contents["allOf"]
    if type(members) is list and len(members) == 1 and _are_plain(proof, contents, step, "allOf"):
        return True
    properties: dict[str, Step] = {}
    required: set[str] = set()
    if not _collect(proof, step, properties, required, MAX_DEPTH):
        return False
    for name, member in properties.items():
        if name not in required:
            proof.queue.append(member)
        elif not proof.is_inhabited(member):
            return False
    return True


def _collect(proof: Plainness, step: Step, properties: dict[str, Step], required: set[str], depth: int) -> bool:
    """Whether a part is an open object whose properties are new, with all that applies in place; they are added."""
    contents = step[0]
    if type(contents) is not dict or depth == 0 or (step[1] is not None and proof.is_named(contents)):
        return False
    if "$ref" in contents:
        name = contents["$ref"]
        target = proof.target(name, step) if type(name) is str else None
        if target is None or not _collect(proof, (target, step, ("$ref",)), properties, required, depth - 1):
            return False
        if proof.draft <= 7:
            return True
    own, names, members = contents.get("properties", {}), contents.get("required", []), contents.get("allOf", [])
    is_open = contents.get("type", "object") == "object" and contents.get("additionalProperties", True) is True
    if not is_open or not proof.asserts_only(contents, _PARTS):
        return False
    if type(own) is not dict or type(names) is not list or not are_names(names) or not are_names(list(own)):
        return False
    if type(members) is not list or not own.keys().isdisjoint(properties):
        return False
    if not can_be_said((*own, *names)):
        return False
    properties.update((name, (member, step, ("properties", name))) for name, member in own.items())
    required.update(names)
    parts = ((member, step, ("allOf", index)) for index, member in enumerate(members))
    return bool(members or "allOf" not in contents) and all(
        _collect(proof, part, properties, required, depth - 1) for part in parts
    )
