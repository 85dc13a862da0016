from __future__ import annotations

from typing import Any, get_args

import pytest

from specbuild.failures import FAILURE, Failure, Infrastructure, MissingHeader, MissingModule, Weight

KINDS: list[Any] = list(get_args(get_args(Failure)[0]))
FILLERS = {
    "language": "python",
    "when": "link",
    "direction": "too-old",
    "seconds": "3",
    "user": "root",
    "lacks": "login",
}
CHOICES = {"problem": ("stale", "no-manifest"), "need": ("tags",), "role": ("submodule",)}


def an_instance(kind: Any) -> Failure:
    required = {name for name, one in kind.model_fields.items() if one.is_required()}
    fields = {name: FILLERS.get(name, "x") for name in required}
    for name, choices in CHOICES.items():
        if name in required:
            allowed = get_args(kind.model_fields[name].annotation)
            fields[name] = next(choice for choice in choices if choice in allowed)
    if "language" in required and "python" not in get_args(kind.model_fields["language"].annotation):
        fields["language"] = "c"
    return FAILURE.validate_python({"kind": kind.model_fields["kind"].default, **fields})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_survives_json(kind: Any) -> None:
    failure = an_instance(kind)
    assert FAILURE.validate_json(FAILURE.dump_json(failure)) == failure


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_words(kind: Any) -> None:
    text = str(an_instance(kind))
    assert text
    assert "{" not in text


def test_kinds_have_names_of_their_own() -> None:
    names = [kind.model_fields["kind"].default for kind in KINDS]
    assert len(names) == len(set(names))


def test_infrastructure_is_a_branch_of_its_own() -> None:
    branch = set(get_args(Infrastructure))
    assert {kind for kind in KINDS if kind.infrastructure} == branch


def test_the_key_is_of_the_diagnosis_alone() -> None:
    one = MissingHeader(header="zlib.h", evidence="a")
    assert one.key == MissingHeader(header="zlib.h", evidence="b", weight=Weight.SYMPTOM).key
    assert one.key != MissingModule(language="python", module="zlib.h").key
