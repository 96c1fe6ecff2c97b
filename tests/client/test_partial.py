"""UNSET and the read-only views: what a model's instance looks like while it is only partly there."""

from __future__ import annotations

import copy
import pickle
from datetime import date
from enum import Enum
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, RootModel, TypeAdapter

from constrained.client import UNSET, Partial, PartialMapping, PartialSequence, Unset, unwrap
from constrained.client.partial import view

T = TypeVar("T")


class Level(Enum):
    HIGH = "high"
    LOW = "low"


class Hobby(BaseModel):
    name: str
    level: Level = Level.LOW


class Address(BaseModel):
    street: str
    number: int | None = None


class Person(BaseModel):
    name: str = "nobody"
    age: int = 0
    married: bool = True
    nick: str | None = "none"
    address: Address | None = None
    hobbies: list[Hobby] = []
    by_city: dict[str, Address] = {}
    born: date | None = None
    first_name: Annotated[str, Field(alias="first-name")] = ""
    pair: tuple[Hobby, Address] | None = None


class Node(BaseModel):
    label: str
    children: list[Node] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int
    name: str


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]
    name: str


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Hobbies(RootModel[list[Hobby]]):
    pass


class Box(BaseModel, Generic[T]):
    content: T


def test_unset_is_one_false_value_of_its_own() -> None:
    assert not UNSET
    assert repr(UNSET) == str(UNSET) == "UNSET"
    assert copy.deepcopy(UNSET) is UNSET
    assert pickle.loads(pickle.dumps(UNSET)) is UNSET
    assert isinstance(UNSET, Unset)
    assert UNSET != "UNSET"
    assert all(value != UNSET for value in (None, False, 0, "", [], {}))


def test_what_is_not_there_is_unset_and_not_the_default() -> None:
    person = view({}, Person)
    assert isinstance(person, Partial)
    for name in Person.model_fields:
        assert getattr(person, name) is UNSET


@pytest.mark.parametrize(
    ("name", "value"), [("name", ""), ("age", 0), ("married", False), ("nick", None), ("hobbies", []), ("by_city", {})]
)
def test_false_values_are_values(name: str, value: Any) -> None:
    found = getattr(view({name: value}, Person), name)
    assert found is not UNSET
    assert found == value
    assert name in view({name: value}, Person)


def test_nested_models_and_collections_are_views() -> None:
    person = view(
        {
            "address": {"street": "Ma"},
            "hobbies": [{"name": "chess", "level": "high"}, {}],
            "by_city": {"Bonn": {"number": 3}},
            "pair": [{"name": "go"}, {"street": "x"}],
        },
        Person,
    )
    assert person.address.street == "Ma"
    assert person.address.number is UNSET
    assert [hobby.name for hobby in person.hobbies] == ["chess", UNSET]
    assert person.hobbies[-1].level is UNSET
    assert person.hobbies[0].level == "high"
    assert [hobby.name for hobby in person.hobbies[:1]] == ["chess"]
    assert person.by_city["Bonn"].number == 3
    assert person.by_city["Bonn"].street is UNSET
    assert person.by_city["Köln"] is UNSET
    assert person.pair[0].name == "go"
    assert person.pair[1].street == "x"
    with pytest.raises(IndexError):
        person.hobbies[2]


def test_recursive_models_are_views_all_the_way_down() -> None:
    node = view({"label": "a", "children": [{"label": "b", "children": [{"label": "c"}]}]}, Node)
    assert node.children[0].children[0].label == "c"
    assert node.children[0].children[0].children is UNSET


def test_fields_are_read_by_name_alias_and_key() -> None:
    person = view({"first-name": "Ada"}, Person)
    assert person.first_name == person["first-name"] == getattr(person, "first-name") == "Ada"
    assert "first-name" in person
    assert "first_name" not in person


def test_keys_are_those_of_the_json_schema() -> None:
    class Aliased(BaseModel):
        model_config = ConfigDict(alias_generator=str.upper)

        plain: int = 1
        chosen: int = Field(1, validation_alias=AliasChoices("one", "two"))
        deep: int = Field(1, validation_alias=AliasChoices(AliasPath("a", 0), "three"))
        serialized: int = Field(1, serialization_alias="out")

    keys = list(Aliased.model_json_schema()["properties"])
    partial = view(dict(zip(keys, range(4), strict=True)), Aliased)
    assert [partial.plain, partial.chosen, partial.deep, partial.serialized] == [0, 1, 2, 3]


def test_unions_can_be_read_before_they_are_decided() -> None:
    undecided = view({"pet": {}}, Owner).pet
    assert undecided.name is undecided.kind is undecided.lives is undecided.tricks is UNSET
    decided = view({"pet": {"kind": "dog", "tricks": ["sit"]}}, Owner).pet
    assert decided.tricks == ["sit"]
    with pytest.raises(AttributeError, match="Dog has no field 'lives'"):
        decided.lives  # noqa: B018


def test_root_models_have_their_root() -> None:
    hobbies = view([{"name": "go"}, {}], Hobbies)
    assert [hobby.name for hobby in hobbies.root] == ["go", UNSET]
    assert (
        repr(hobbies)
        == "Partial[Hobbies](root=[Partial[Hobby](name='go', level=UNSET), Partial[Hobby](name=UNSET, level=UNSET)])"
    )
    assert view(UNSET, Hobbies) is UNSET


def test_other_types_that_pydantic_knows() -> None:
    assert view([{"name": "go"}], list[Hobby])[0].name == "go"
    assert view({"a": [{"name": "go"}]}, dict[str, list[Hobby]] | None)["a"][0].name == "go"
    assert view({"content": {"street": "x"}}, Box[Address]).content.street == "x"
    assert view({"content": {"street": "x"}}, Box).content["street"] == "x"
    assert view(3, int) == 3
    assert view(None, Person | None) is None


def test_plain_values_are_read_only_views_too() -> None:
    value = view({"a": {"b": [1, {"c": None}]}})
    assert isinstance(value, PartialMapping)
    assert isinstance(value["a"]["b"], PartialSequence)
    assert value["a"]["b"][1]["c"] is None
    assert value["x"] is value["a"]["x"] is value.get("x") is UNSET
    assert value.get("x", 1) == 1
    assert value.get("a") == {"b": [1, {"c": None}]}
    assert list(value) == ["a"]
    assert "x" not in value


def test_views_cannot_be_written() -> None:
    person = view({"name": "Ada", "hobbies": [], "by_city": {}}, Person)
    for target in (person, person.hobbies, person.by_city):
        with pytest.raises(AttributeError, match="read-only"):
            target.name = "x"
        with pytest.raises(AttributeError, match="read-only"):
            del target.name
        with pytest.raises(TypeError):
            target["name"] = "x"
    with pytest.raises(AttributeError, match="Person has no field 'nmae'"):
        person.nmae  # noqa: B018


def test_views_are_live_and_unwrap_copies() -> None:
    value: dict[str, Any] = {"hobbies": []}
    person = view(value, Person)
    hobbies, copied = person.hobbies, unwrap(person)
    value["hobbies"].append({"name": "go"})
    value["age"] = 3
    assert person.age == 3
    assert hobbies[0].name == "go"
    assert copied == {"hobbies": []}
    unwrap(person.hobbies).clear()
    assert len(hobbies) == 1
    assert unwrap(UNSET) is UNSET


def test_views_show_and_compare_what_they_hold() -> None:
    value = {"street": "x"}
    assert repr(view(value, Address)) == "Partial[Address](street='x', number=UNSET)"
    assert view(value, Address) == view(value) == value
    assert view(value, Address) != view({"street": "y"}, Address)
    assert dir(view(value, Address)) == ["number", "street"]
    assert copy.deepcopy(view(value, Address)) == pickle.loads(pickle.dumps(view(value, Address))) == value
    with pytest.raises(TypeError):
        hash(view(value, Address))


PEOPLE = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(max_size=3),
        "age": st.integers(),
        "nick": st.none() | st.text(max_size=3),
        "address": st.none()
        | st.fixed_dictionaries({"street": st.text(max_size=3)}, optional={"number": st.none() | st.integers()}),
        "hobbies": st.lists(st.fixed_dictionaries({"name": st.text(max_size=3)}), max_size=3),
    },
)


@given(PEOPLE)
def test_a_view_of_a_whole_document_agrees_with_the_instance(value: dict[str, Any]) -> None:
    person, partial = TypeAdapter(Person).validate_python(value), view(value, Person)
    for name in Person.model_fields:
        found = getattr(partial, name)
        if name not in person.model_fields_set:
            assert found is UNSET
        elif name == "hobbies":
            assert [hobby.name for hobby in found] == [hobby.name for hobby in person.hobbies]
        elif isinstance(getattr(person, name), BaseModel):
            assert found.street == getattr(person, name).street
        else:
            assert found == getattr(person, name)


def test_a_view_is_of_the_class_generated_from_its_model() -> None:
    person = view({"name": "Ada", "hobbies": [{"name": "tea"}], "address": {}}, Person)
    assert type(person) is Partial[Person] is Partial[Person]
    assert isinstance(person, Partial)
    assert isinstance(person.hobbies[0], Partial[Hobby])
    assert not isinstance(person.address, Partial[Hobby])
    assert (Partial[Person].__name__, Partial[Person].__module__) == ("Partial[Person]", __name__)
    assert type(pickle.loads(pickle.dumps(person))) is Partial[Person]
    assert isinstance(view({"pet": {"kind": "cat"}}, Owner).pet, Partial)


def test_the_generated_class_says_what_each_field_may_read_as() -> None:
    kinds = Partial[Person].__annotations__
    assert set(kinds) == set(Person.model_fields)
    assert kinds["name"] == str | None | Unset
    assert kinds["address"] == Partial[Address] | None | Unset  # type: ignore[operator]
    assert kinds["hobbies"] == PartialSequence | None | Unset
    assert kinds["by_city"] == PartialMapping | None | Unset
    assert kinds["born"] is Any
    assert Partial[Cat].__annotations__["kind"] == Literal["cat"] | None | Unset
    assert Partial[Node].__annotations__["label"] == str | None | Unset


def test_the_generated_class_documents_its_fields() -> None:
    class Told(BaseModel):
        size: Annotated[int, Field(description="How large it is.")] = 0
        more: Told | None = None

    assert Partial[Told].size.__doc__ == "How large it is."
    assert isinstance(view({"more": {"more": {"size": 1}}}, Told).more.more, Partial[Told])
    assert view({"more": {"more": {"size": 1}}}, Told).more.more.size == 1


def test_a_generated_class_is_read_only() -> None:
    person = view({"name": "Ada"}, Person)
    for change in (lambda: setattr(person, "name", "x"), lambda: delattr(person, "name")):
        with pytest.raises(AttributeError, match="read-only"):
            change()
