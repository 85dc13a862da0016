"""Which bases suit a source tree."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbuild.bases.choose import choose_bases, provider_of, providers, rank_releases
from specbuild.bases.contract import BaseProvider
from specbuild.config import Settings
from specbuild.errors import BaseUnavailableError, ConfigError, SpecBuildError, TransientError
from specbuild.recipe import BaseRef
from specbuild.repo.facts import CiJob, Evidence, Fact, Facts
from specbuild.sandbox.contract import Backend, Checkpoint

HERE = Evidence(file="pyproject.toml", line=1)


def facts(
    requires: str | None = None,
    *,
    classifiers: tuple[str, ...] = (),
    ci: tuple[str, ...] = (),
    year: int | None = None,
    language: str = "python",
) -> Facts:
    """What was read of a source tree, so far as the choice looks at it."""
    return Facts(
        languages=(Fact(value=language, evidence=HERE),),
        requires_python=Fact(value=requires, evidence=HERE) if requires else None,
        classifier_pythons=tuple(Fact(value=version, evidence=HERE) for version in classifiers),
        ci=(CiJob(provider="github", name="tests", pythons=ci, tests=True, evidence=HERE),) if ci else (),
        revision_date=Fact(value=datetime(year, 6, 15, tzinfo=UTC), evidence=HERE) if year else None,
    )


def names(read: Facts) -> list[str]:
    return [choice.release.name for choice in rank_releases(read)]


def test_an_old_project_gets_the_oldest_release_first() -> None:
    assert names(facts(year=2018))[0] == "bullseye"
    assert names(facts(classifiers=("3.5", "3.6"), year=2018))[0] == "bullseye"


def test_the_release_of_the_revisions_time_comes_first() -> None:
    assert names(facts(">=3.8", year=2022)) == ["bullseye", "bookworm"]
    assert names(facts(">=3.8", year=2024))[0] == "bookworm"
    assert names(facts(">=3.10", year=2026)) == ["trixie", "bookworm"]


def test_interpreters_that_are_not_admitted_are_left_out() -> None:
    assert names(facts(">=3.12", year=2020)) == ["trixie"]
    assert names(facts(">=3.6,<3.10", year=2026)) == ["bullseye"]
    assert names(facts(">=3.11.3")) == ["trixie"]


def test_what_ci_tests_on_counts_more_than_the_date() -> None:
    assert names(facts(ci=("3.9",), year=2026))[0] == "bullseye"
    assert names(facts(ci=("3.12", "3.13", "pypy3.10"), year=2020))[0] == "trixie"
    assert names(facts(ci=("3.11",), classifiers=("3.9",)))[0] == "bookworm"


def test_a_project_for_newer_interpreters_gets_the_release_in_the_making() -> None:
    assert names(facts(">=3.14")) == ["forky", "trixie"]


def test_a_project_for_python_2_gets_the_oldest_release() -> None:
    assert names(facts("<3")) == ["bullseye"]


def test_without_any_hint_the_middle_comes_first() -> None:
    assert names(facts()) == ["bookworm", "trixie"]
    assert names(facts(language="rust"))[0] == "bookworm"
    assert names(Facts())[0] == "bookworm"


def test_a_specifier_that_cannot_be_read_excludes_nothing() -> None:
    assert names(facts("3.7 or so"))[0] == "bookworm"


@given(
    requires=st.one_of(
        st.none(), st.text(max_size=12), st.sampled_from([">=3.6", "~=3.8", "==3.13.*", "<4", "!=3.11.*"])
    ),
    ci=st.lists(st.sampled_from(["3.8", "3.x", "pypy3.9", "", "3.13-dev", "4"]), max_size=3),
    year=st.one_of(st.none(), st.integers(1990, 2100)),
)
def test_there_is_always_a_choice_and_a_reason(requires: str | None, ci: list[str], year: int | None) -> None:
    choices = rank_releases(facts(requires, ci=tuple(ci), year=year))
    assert choices
    assert all(choice.reason for choice in choices)
    assert len({choice.release.name for choice in choices}) == len(choices)


class Shop:
    """A provider of ready bases under one prefix; what it does not have fails with the given error."""

    def __init__(self, prefix: str, *, error: SpecBuildError | None = None, cached: tuple[str, ...] = ()) -> None:
        self.name = prefix
        self._error = error
        self._cached = cached
        self.made: list[str] = []

    def claims(self, base: str) -> bool:
        return base.partition(":")[0] == self.name

    def cached(self, base: str) -> BaseRef | None:
        return BaseRef(name=base, digest=f"sha256:{base}") if base in self._cached else None

    async def resolve(self, base: str) -> BaseRef:
        if self._error:
            raise self._error
        self.made.append(base)
        return BaseRef(name=base, digest=f"sha256:{base}", portable=self.name != "host")

    async def provide(self, ref: BaseRef, backend: Backend) -> Checkpoint:
        raise NotImplementedError


def shops(*given: Shop) -> dict[str, BaseProvider]:
    return {shop.name: shop for shop in given}


async def test_auto_says_what_it_picks_and_why() -> None:
    told: list[str] = []
    known = shops(Shop("debian"), Shop("host"))
    found = await choose_bases(("auto",), facts(">=3.8", year=2024), providers=known, notify=told.append)
    assert [ref.name for ref in found.planned] == ["debian:bookworm", "debian:bullseye"]
    assert "debian:bookworm (Python 3.11 satisfies" in told[0]


@pytest.mark.parametrize("error", [BaseUnavailableError("no tool"), TransientError("no network")])
async def test_auto_falls_back_to_the_host_and_says_so(error: SpecBuildError) -> None:
    told: list[str] = []
    known = shops(Shop("debian", error=error), Shop("host"))
    found = await choose_bases(("auto",), facts(), providers=known, notify=told.append)
    assert [ref.name for ref in found.ready] == ["host"]
    assert any(error.message in line for line in told)
    assert "running system" in told[-1]


async def test_a_base_that_the_user_named_must_be_there() -> None:
    known = shops(Shop("debian", error=TransientError("no network")), Shop("host"))
    with pytest.raises(TransientError, match="no network"):
        await choose_bases(("debian:sid",), facts(), providers=known)


async def test_named_bases_keep_their_order_and_come_once() -> None:
    known = shops(Shop("debian"), Shop("host"))
    found = await choose_bases(("host", "auto", "debian:bookworm"), facts(), providers=known)
    assert [ref.name for ref in found.planned] == ["host", "debian:bookworm", "debian:trixie"]


async def test_only_the_best_base_is_made_before_the_race_begins() -> None:
    debian = Shop("debian")
    found = await choose_bases(("auto",), facts(), providers=shops(debian))
    assert debian.made == ["debian:bookworm"]
    assert [ref.name for ref in found.ready] == ["debian:bookworm"]
    assert (await found.pending[0].make()).name == "debian:trixie"


async def test_nothing_is_made_while_another_base_is_ready() -> None:
    debian = Shop("debian", cached=("debian:trixie",))
    found = await choose_bases(("auto",), facts(), providers=shops(debian))
    assert debian.made == []
    assert [ref.name for ref in found.ready] == ["debian:trixie"]
    assert [pending.planned.name for pending in found.pending] == ["debian:bookworm"]


async def test_a_plan_makes_nothing() -> None:
    debian = Shop("debian", error=TransientError("asked for"))
    found = await choose_bases(("auto", "debian:sid"), facts(), providers=shops(debian), make=False)
    assert found.ready == ()
    assert [ref.name for ref in found.planned] == ["debian:bookworm", "debian:trixie", "debian:sid"]
    assert found.planned[0].python == "3.11"


async def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="there is no base 'plan9'") as caught:
        await choose_bases(("plan9",), facts(), providers=shops(Shop("debian"), Shop("host")))
    assert "host" in caught.value.hint
    assert "debian:bookworm" in caught.value.hint
    assert "plan9:latest" in caught.value.hint, "it may be an image, whose tag is missing"


def test_providers_are_found_by_name(tmp_path: Path) -> None:
    settings = Settings(cache_dir=tmp_path)
    assert {"debian", "host"} <= providers(settings).keys()
    assert provider_of("debian:12", settings).name == "debian"
    assert provider_of("host", settings).name == "host"
    with pytest.raises(ConfigError):
        provider_of("debian", settings)
