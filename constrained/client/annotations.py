"""What a type annotation says of the JSON value below it: which models, elements and members may be there.

An annotation is handled as its *arms*: the alternatives of its unions, without `Annotated`, aliases and None. Knows nothing of
values that are only partly there, nor of validation; where an annotation says nothing, the answer is empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

Arms = tuple[Any, ...]


class ModelField(NamedTuple):
    """One field of a model: the key of its member in JSON, and the arms of its annotation."""

    key: str
    arms: Arms


def arms_of(annotation: Any) -> Arms:
    """The alternatives of `annotation`, flat."""
    origin: Any = get_origin(annotation)
    if origin is Annotated:
        return arms_of(get_args(annotation)[0])
    if origin is Union or origin is UnionType:
        return _all(arms_of(arm) for arm in get_args(annotation))
    alias = getattr(annotation, "__value__", None)  # a `type` statement or a TypeAliasType
    if alias is not None:
        return arms_of(alias)
    return () if annotation in (None, NoneType) else (annotation,)


def models_in(arms: Arms) -> tuple[type[BaseModel], ...]:
    return tuple(arm for arm in arms if isinstance(arm, type) and issubclass(arm, BaseModel))


def item_arms(arms: Arms, index: int) -> Arms:
    """What element `index` of an array may be."""
    return _all(_item_arms(get_origin(arm), get_args(arm), index) for arm in arms)


def member_arms(arms: Arms) -> Arms:
    """What a member of an object may be that is no model: the value type of a mapping."""
    return _all(arms_of(get_args(arm)[1]) for arm in arms if _is_a(get_origin(arm), Mapping) and len(get_args(arm)) == 2)


@lru_cache(maxsize=1024)
def fields_of(model: type[BaseModel]) -> Mapping[str, ModelField]:
    """The fields of `model` by name."""
    return {name: ModelField(_key(name, info), arms_of(info.annotation)) for name, info in model.model_fields.items()}


def fits(model: type[BaseModel], value: Mapping[str, Any]) -> bool:
    """Whether the members that are there can belong to `model`, as far as its `Literal` fields (discriminators) tell."""
    for key, arms in fields_of(model).values():
        choices = [choice for arm in arms if _is_literal(arm) for choice in get_args(arm)]
        if choices and key in value and value[key] is not None and value[key] not in choices:
            return False
    return True


def _key(name: str, info: FieldInfo) -> str:
    """The key that pydantic's JSON Schema of the model gives to the field."""
    alias = info.validation_alias
    if isinstance(alias, AliasChoices):
        alias = next((choice for choice in alias.choices if isinstance(choice, str)), None)
    return alias if isinstance(alias, str) else name


def _item_arms(origin: Any, args: tuple[Any, ...], index: int) -> Arms:
    if not _is_a(origin, Collection) or _is_a(origin, Mapping) or not args:
        return ()
    if origin is tuple and args[-1] is not Ellipsis:
        return arms_of(args[index]) if index < len(args) else ()
    return arms_of(args[0])


def _is_literal(arm: Any) -> bool:
    origin: Any = get_origin(arm)
    return origin is Literal


def _is_a(origin: Any, kind: type) -> bool:
    return isinstance(origin, type) and issubclass(origin, kind)


def _all(parts: Iterable[Arms]) -> Arms:
    return tuple(arm for part in parts for arm in part)
