"""Read-only views of a document that is still being generated, shaped by a pydantic model.

`view(value, annotation)` wraps plain JSON values without copying them. Where the finished answer has a model instance, the
view has a `Partial` with the same attribute names; arrays and other objects become a `PartialSequence` and a `PartialMapping`.
A place that has no value yet reads as `UNSET`. Nothing is validated and no default is filled in: a view shows JSON values, so a
`date` is still a string.

A view is live: it reads the values as they are at the moment of the access. `unwrap` gives a plain copy.

`Partial[Model]` is a class of its own, generated from the model: one property for each field, annotated with what it may read
as. So a view can be asked for its type (`isinstance(view, Partial[Person])`), and shells and editors know its fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, SupportsIndex, TypeVar, Union, get_origin, overload

from pydantic import BaseModel, RootModel

from constrained.client.annotations import Arms, ModelField, arms_of, fields_of, fits, item_arms, member_arms, models_in
from constrained.client.unset import UNSET, Unset
from constrained.stream.snapshot import copy_json

D = TypeVar("D")
M = TypeVar("M")


class View:
    """Base of the views: a plain JSON value, and the arms of the annotation that shapes it."""

    __slots__ = ("_arms", "_value")

    _arms: Arms
    _value: Any

    def __init__(self, value: Any, arms: Arms) -> None:
        object.__setattr__(self, "_value", value)
        object.__setattr__(self, "_arms", arms)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a partial view is read-only: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a partial view is read-only: {name!r} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        """Equal by the JSON values, to another view and to plain values."""
        return bool(self._value == (other._value if isinstance(other, View) else other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return wrap, (self._value, self._arms)


class Partial(View, Generic[M]):
    """A model instance so far: the model's fields as attributes, by name or alias, and as items, by their JSON key.

    `Partial[Model]` is the view of one model. Where a union leaves several models open, the fields of all of them can be read;
    a `Literal` field that has arrived rules out the models that it does not fit.
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __class_getitem__(cls, model: Any) -> Any:
            is_model = cls is Partial and isinstance(model, type) and issubclass(model, BaseModel)
            return _generated(model) if is_model else super().__class_getitem__(model)

    def _models(self) -> tuple[type[BaseModel], ...]:
        models = models_in(self._arms)
        if len(models) == 1:
            return models
        return tuple(model for model in models if fits(model, self._value)) or models

    def _fields(self) -> Mapping[str, ModelField]:
        """The fields of every model that may be here; the first model's where names collide."""
        models = self._models()
        if len(models) == 1:
            return fields_of(models[0])
        return {name: field for model in reversed(models) for name, field in fields_of(model).items()}

    def _read(self, field: ModelField) -> Any:
        return wrap(self._value[field.key], field.arms) if field.key in self._value else UNSET

    def __getattr__(self, name: str) -> Any:
        fields = self._fields()
        if name in fields:
            return self._read(fields[name])
        for field in fields.values():
            if field.key == name:
                return self._read(field)
        raise AttributeError(f"{self._name()} has no field {name!r}")

    def __getitem__(self, key: str) -> Any:
        for field in self._fields().values():
            if field.key == key:
                return self._read(field)
        return wrap(self._value.get(key, UNSET), ())

    def __contains__(self, key: object) -> bool:
        """Whether the member `key` has begun."""
        return key in self._value

    def __dir__(self) -> list[str]:
        return sorted(self._fields())

    def _name(self) -> str:
        return " | ".join(model.__name__ for model in self._models())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={self._read(field)!r}" for name, field in self._fields().items())
        return f"Partial[{self._name()}]({fields})"


class PartialRoot(View):
    """A `RootModel` so far; `root` is the view of its value."""

    __slots__ = ()

    @property
    def root(self) -> Any:
        return wrap(self._value, fields_of(self._arms[0])["root"].arms)

    def __repr__(self) -> str:
        return f"Partial[{self._arms[0].__name__}](root={self.root!r})"


class PartialSequence(View, Sequence[Any]):
    """An array so far; its last element may still be open."""

    __slots__ = ()

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        places = range(len(self._value))[index]
        return tuple(map(self._at, places)) if isinstance(places, range) else self._at(places)

    def _at(self, index: int) -> Any:
        return wrap(self._value[index], item_arms(self._arms, index))

    def __len__(self) -> int:
        return len(self._value)

    def __repr__(self) -> str:
        return repr(list(self))


class PartialMapping(View, Mapping[str, Any]):
    """An object so far, without a model: a key that is not there reads as `UNSET`, not as an error."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        return wrap(self._value[key], member_arms(self._arms)) if key in self._value else UNSET

    @overload
    def get(self, key: str, /) -> Any: ...
    @overload
    def get(self, key: str, /, default: D) -> Any | D: ...
    def get(self, key: str, /, default: Any = UNSET) -> Any:
        return self[key] if key in self._value else default

    def __contains__(self, key: object) -> bool:
        return key in self._value

    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __repr__(self) -> str:
        return repr(dict(self))


def view(value: Any, annotation: Any = Any) -> Any:
    """`value` (plain JSON values, or `UNSET`) as a read-only view of the shape that `annotation` gives."""
    return wrap(value, arms_of(annotation))


def unwrap(value: Any) -> Any:
    """The plain JSON values under a view, copied; anything else as it is."""
    return copy_json(value._value) if isinstance(value, View) else value


def wrap(value: Any, arms: Arms) -> Any:
    """As `view`, with the annotation's arms."""
    if value is None or value is UNSET:
        return value
    models = models_in(arms)
    if models and len(arms) == 1 and issubclass(models[0], RootModel):
        return PartialRoot(value, arms)
    if isinstance(value, dict):
        records = tuple(model for model in models if not issubclass(model, RootModel))
        if len(records) == 1:
            return _generated(records[0])(value, records)
        return Partial(value, records) if records else PartialMapping(value, arms)
    return PartialSequence(value, arms) if isinstance(value, list) else value


_OF_MODEL = "__partial_view__"


def _generated(model: type[BaseModel]) -> type[Any]:
    """The view of one model: a subclass of `Partial` with a property for each of its fields. It lives as long as its model."""
    if _OF_MODEL not in vars(model):
        name = f"Partial[{model.__name__}]"
        body = {
            "__slots__": (),
            "__doc__": f"A {model.__name__} so far.",
            "__module__": model.__module__,
            "__annotations__": {},
        }
        kind = type(name, (Partial,), body)
        setattr(model, _OF_MODEL, kind)  # before its fields: a model may contain itself
        for field_name, field in fields_of(model).items():
            setattr(kind, field_name, _property(field, model.model_fields[field_name].description))
            kind.__annotations__[field_name] = _reads_as(field.arms)
    generated: type[Any] = vars(model)[_OF_MODEL]
    return generated


def _property(field: ModelField, doc: str | None) -> property:
    def read(self: Partial[Any]) -> Any:
        return self._read(field)

    return property(read, doc=doc)


def _reads_as(arms: Arms) -> Any:
    """What a place with these arms may read as, as an annotation."""
    kinds = [_view_kind(arm) for arm in arms]
    return Any if Any in kinds else Union[(*kinds, None, Unset)]


def _view_kind(arm: Any) -> Any:
    origin = get_origin(arm) or arm
    if not isinstance(origin, type):
        return arm if origin is Literal else Any
    if issubclass(origin, RootModel):
        return PartialRoot
    if issubclass(origin, BaseModel):
        return _generated(origin)
    if issubclass(origin, Mapping):
        return PartialMapping
    if issubclass(origin, list | tuple | set | frozenset):
        return PartialSequence
    return origin if origin in (bool, int, float, str) else Any
