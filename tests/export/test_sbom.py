"""The bill of materials is what the specification asks for."""

from __future__ import annotations

import json

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from specbuild.environment import Environment, Package, RepoInfo, Seconds
from specbuild.export.devcontainer import devcontainer
from specbuild.export.sbom import sbom
from specbuild.recipe import BaseRef, Check, Level, Recipe, Step, StepKind, source_step
from specbuild.verify.verdict import Verdict

BASE = BaseRef(name="debian:bookworm", digest="sha256:" + "a" * 64, release="bookworm")
PACKAGES = (
    Package(name="libc6:amd64", version="2:2.36-9+deb12u1~x", ecosystem="debian", architecture="amd64"),
    Package(name="tzdata", version="2025b", ecosystem="debian", architecture="all", hashes=("sha256:" + "1" * 64,)),
    Package(name="Zope.Interface", version="1.0+local", ecosystem="pypi", hashes=("sha256:" + "2" * 64,)),
    Package(name="demo", version="1", ecosystem="pypi", source="editable file:///repo"),
)


def environment() -> Environment:
    check = Check(level=Level.TESTS, runner="pytest", step=Step(kind=StepKind.TEST, run="pytest"))
    build = Step(kind=StepKind.BUILD, run="pip install -e .", title="install the project", env=(("A", "b c"),))
    return Environment(
        id="demo",
        outcome="committed",
        specbuild_version="0.1",
        created="2026-01-02T03:04:05Z",
        repo=RepoInfo(origin="/x/demo", kind="folder", revision=None, digest="d" * 64, date=None),
        base=BASE,
        recipe=Recipe(base=BASE, steps=(source_step("d" * 64), build), check=check),
        verdict=Verdict(level=Level.TESTS, ok=True, reason="", passed=1),
        lock=PACKAGES,
        seconds=Seconds(total=1, to_commit=1),
    )


def test_it_validates_against_the_official_schema() -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(sbom(environment())) is None


def test_it_is_the_same_each_time() -> None:
    assert sbom(environment()) == sbom(environment())


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("libc6", "pkg:deb/debian/libc6@2:2.36-9%2Bdeb12u1~x?arch=amd64&distro=bookworm"),
        ("Zope.Interface", "pkg:pypi/zope-interface@1.0%2Blocal"),
    ],
)
def test_packages_have_addresses_in_canonical_form(name: str, address: str) -> None:
    components = {each["name"]: each for each in json.loads(sbom(environment()))["components"]}
    assert components[name]["purl"] == address
    parsed = PackageURL.from_string(address)
    assert (parsed.version, parsed.name) in {("2:2.36-9+deb12u1~x", "libc6"), ("1.0+local", "zope-interface")}


def test_hashes_are_given_where_they_are_known() -> None:
    components = {each["name"]: each for each in json.loads(sbom(environment()))["components"]}
    assert components["tzdata"]["hashes"] == [{"alg": "SHA-256", "content": "1" * 64}]
    assert "hashes" not in components["libc6"]


def test_an_editor_gets_the_dockerfile_and_the_build_of_its_own_checkout() -> None:
    files = devcontainer(environment())
    about = json.loads(files["devcontainer.json"])
    assert about["workspaceFolder"] == "/repo"
    assert about["build"] == {"dockerfile": "Dockerfile", "context": ".."}
    assert "COPY . /repo" in files["Dockerfile"]
    assert "env 'A=b c' /bin/sh -eu -c 'pip install -e .'" in files["prepare.sh"]
