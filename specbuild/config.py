"""Settings: arguments, then `SPECBUILD_*` variables, then `specbuild.toml` or `[tool.specbuild]`, both of the cwd."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    PyprojectTomlConfigSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from specbuild.breadth import Breadth
from specbuild.errors import ConfigError
from specbuild.recipe import Level

_TOML = "specbuild.toml"
_PYPROJECT = "pyproject.toml"

SMALLEST = 64 << 20
"""Bytes: no environment fits into less, so that a smaller number has lost its unit."""


def _named(value: object) -> object:
    """An empty path would be the present folder, which nobody means to fill, or to clean."""
    if value == "":
        raise ValueError("names no folder")
    return value


def _absolute(folder: Path) -> Path:
    """The same wherever a process that is told of it runs."""
    return folder.expanduser().absolute()


def _split(value: object) -> object:
    """`host, debian:bookworm` as well as a list, or a list in JSON."""
    if not isinstance(value, str):
        return value
    return json.loads(value) if value.lstrip().startswith("[") else value.replace(",", " ").split()


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


class Reuse(StrEnum):
    """Whose checkpoints are taken."""

    BUILDS = "builds"
    BUILD = "build"
    NONE = "none"


class Settings(BaseSettings):
    """Everything that a user can set. Frozen."""

    model_config = SettingsConfigDict(
        env_prefix="SPECBUILD_",
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        toml_file=_TOML,
        pyproject_toml_table_header=("tool", "specbuild"),
        use_attribute_docstrings=True,
    )

    cache_dir: Annotated[Path, BeforeValidator(_named), AfterValidator(_absolute)] = Field(
        default_factory=lambda: platformdirs.user_cache_path("specbuild")
    )
    """Where the store and the caches of package managers lie. Not on overlayfs, NFS or tmpfs of little size."""
    bases: Names = ("auto",)
    """`auto`, or names of bases in order of preference: `host`, `debian:bookworm`, `python:3.9`, `engine:NAME`, …"""
    debian_mirror: str | None = None
    """Address of a Debian archive to make bases from, instead of the host's own mirrors."""
    backend: str = "auto"
    """What makes the sandboxes: `overlay`, `docker` (any Docker-compatible engine), or `auto`, the first that works."""
    client: Literal["auto", "docker", "podman"] = "auto"
    """Whose engine images are exported to, and Dockerfiles built by: `auto` is the first that answers."""
    jobs: Annotated[int, Field(ge=1)] | None = None
    """Steps that run at once; default: one more than the usable cores."""
    sequential: bool = False
    """One slot and one recipe at a time: the baseline."""
    pursue: Breadth = Breadth.ALL
    """What runs at once: one `recipe`, one `strategy` with its repairs, or `all` that pays."""
    repair: bool = True
    """Whether what fails is repaired; without, strategies alone race."""
    ahead: bool = True
    """Whether repairs are forked while the step that will need them still runs; without, failures are repaired once
    they were observed."""
    beside: bool = True
    """Whether system packages are installed beside the Steps before them, and grafted onto what those come to."""
    warm: bool = True
    """Whether slots that would be idle download ahead what the leading candidates will need."""
    reuse: Reuse = Reuse.BUILDS
    """Which checkpoints of Steps that have run before are taken: those of earlier `builds` too, of this `build` alone,
    or `none`, so that every recipe starts from its base."""
    refresh: bool = False
    """Take no checkpoint that was made before now, and begin with new ones for later builds."""
    max_age: Annotated[float, Field(gt=0)] = 7 * 86400.0
    """Seconds for which checkpoints are shared between builds: what they hold comes from indexes, which go on."""
    learn: bool = True
    """Whether outcomes of earlier builds are used, and those of this one kept."""
    strategies: Names = ()
    """Only strategies whose name starts with one of these; empty for all."""
    level: Level = Level.TESTS
    test_command: str | None = None
    """The user's own measure, for the level `command` (or, with another level, instead of the one that was found)."""
    min_pass_ratio: Annotated[float, Field(ge=0, le=1)] = 0.9
    time_limit: Annotated[float, Field(gt=0)] | None = None
    """Seconds for the whole build."""
    step_timeout: Annotated[float, Field(gt=0)] = 1800.0
    """Seconds for one step."""
    silence_timeout: Annotated[float, Field(gt=0)] | None = 900.0
    """Seconds a step may run without any output."""
    memory_bytes: Annotated[int, Field(ge=SMALLEST)] | None = None
    """For each sandbox; default: three quarters of the machine's memory."""
    disk_bytes: Annotated[int, Field(ge=SMALLEST)] | None = 20 << 30
    """For the layer of each sandbox."""
    processes: Annotated[int, Field(gt=0)] = 4096
    max_candidates: Annotated[int, Field(ge=1)] = 24
    replay: bool = True
    """Build the winner again from its base, without earlier checkpoints, before it is called reproducible."""
    test_network: bool = True
    """Whether the tests may use the network."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments before variables before files."""
        return (
            init_settings,
            env_settings,
            TomlConfigSettingsSource(settings_cls),
            PyprojectTomlConfigSettingsSource(settings_cls, _own_part_of(Path(_PYPROJECT))),
        )

    @property
    def breadth(self) -> Breadth:
        """How much is pursued at once."""
        return Breadth.RECIPE if self.sequential else self.pursue

    @property
    def slots(self) -> int:
        """Steps that run at once."""
        if self.sequential:
            return 1
        return self.jobs or len(os.sched_getaffinity(0)) + 1


def _own_part_of(pyproject: Path) -> Path:
    """The file, if it may have a table of ours; another may be as broken as it likes: it is what is to be set up."""
    ours = pyproject.is_file() and b"specbuild" in pyproject.read_bytes()
    return pyproject if ours else Path(os.devnull)


def load_settings(**given: object) -> Settings:
    """Settings with `given` arguments (None means not given) over variables and files.

    Raises ConfigError with every value that makes no sense, or for a file that cannot be read.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, e['loc']))}: {e['msg']} (given: {e['input']!r})" for e in error.errors()]
        raise ConfigError(
            "these settings make no sense:\n" + "\n".join(lines),
            hint="see `specbuild build --help` for what each takes",
        ) from error
    except (SettingsError, OSError, ValueError, AttributeError) as error:
        # ValueError: broken TOML, or not UTF-8; AttributeError: pydantic-settings takes the table for granted.
        raise ConfigError(
            f"the settings cannot be read: {error}",
            hint=f"see {_TOML} and {_PYPROJECT} in {Path.cwd()}, and the variables SPECBUILD_*",
        ) from error
