"""Object plans: in which order the members of an object shape come, and what its other keys may be."""

from __future__ import annotations

from constrained.automaton import strings
from constrained.automaton.frames import Keys
from constrained.grammar.language import Language, from_values
from constrained.grammar.nodes import Nodes
from constrained.grammar.shapes import NodeKey, ObjectShape

MAX_LISTED_KEYS = 100  # a pattern class of no more keys is generated as so many properties


class ObjectPlan:
    """An object shape laid out for generation: the order of its properties and what may follow each position.

    `names` are the properties that some value can fill, then the keys of small pattern classes; position `len(names)` is the
    place of all other keys. Those are either free (`additional`), or of one of `classes`: languages with a node each.
    Tags name what a key is: 0 is a free one, i + 1 the i-th name, len(names) + 1 + k one of the k-th class.
    """

    def __init__(self, shape: ObjectShape, nodes: Nodes) -> None:
        self.shape = shape
        self.members = {name: key for name, key in shape.properties.items() if not nodes[key].is_empty}
        self.declared = list(shape.properties)
        self.additional = False
        self.free: NodeKey = ()
        self.classes: list[tuple[Language, NodeKey]] = []
        for language, key in nodes.key_classes(shape):
            if nodes[key].is_empty:
                continue
            if language is None:
                self.additional, self.free = True, key
            elif (keys := language.values(MAX_LISTED_KEYS)) is not None:
                self.members |= dict.fromkeys(keys, key)
            else:
                self.classes.append((language, key))
        self.names = list(self.members)
        self._next_required = [len(self.names)] * (len(self.names) + 1)
        for index in range(len(self.names) - 1, -1, -1):
            required = self.names[index] in shape.required
            self._next_required[index] = index if required else self._next_required[index + 1]

    def may_close(self, position: int) -> bool:
        """Whether no required property is left at `position`."""
        return self._next_required[position] == len(self.names)

    def candidates(self, position: int) -> range:
        """The properties that may come next: up to the next required one."""
        return range(position, min(self._next_required[position] + 1, len(self.names)))

    def may_add(self, position: int) -> bool:
        """Whether a free key may come next."""
        return self.additional and self.may_close(position)

    def open_classes(self, position: int, seen: Keys) -> list[tuple[int, Language]]:
        """The classes of which a key may come next: tag, and the keys that are not there yet."""
        if not self.may_close(position):
            return []
        used = from_values(seen)
        left = [language & ~used if seen else language for language, _ in self.classes]
        return [(len(self.names) + 1 + k, language) for k, language in enumerate(left) if not language.is_empty]

    def may_continue(self, position: int, seen: Keys) -> bool:
        """Whether any key may come next."""
        return position < len(self.names) or self.may_add(position) or bool(self.open_classes(position, seen))

    def member(self, tag: int) -> NodeKey:
        """The node of the member whose key has `tag`."""
        if tag == strings.FREE_TAG:
            return self.free
        if tag <= len(self.names):
            return self.members[self.names[tag - 1]]
        return self.classes[tag - len(self.names) - 1][1]

    def after(self, tag: int) -> int:
        """The position after the member whose key has `tag`."""
        return tag if 0 < tag <= len(self.names) else len(self.names)

    def is_of_class(self, tag: int) -> bool:
        """Whether a key with `tag` is of a class."""
        return tag > len(self.names)
