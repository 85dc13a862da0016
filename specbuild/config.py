"""Settings: arguments, then `SPECBUILD_*` variables, then `specbuild.toml` or `[tool.specbuild]`, both of the cwd."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    PyprojectTomlConfigSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from specbuild.errors import ConfigError
from specbuild.recipe import Level


def _named(value: object) -> object:
    """An empty path would be the present folder, which nobody means to fill, or to clean."""
    if value == "":
        raise ValueError("names no folder")
    return value


def _absolute(folder: Path) -> Path:
    """The same wherever a process that is told of it runs."""
    return folder.expanduser().absolute()


class Settings(BaseSettings):
    """Everything that a user can set. Frozen."""

    model_config = SettingsConfigDict(
        env_prefix="SPECBUILD_",
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        toml_file="specbuild.toml",
        pyproject_toml_table_header=("tool", "specbuild"),
        use_attribute_docstrings=True,
    )

    cache_dir: Annotated[Path, BeforeValidator(_named), AfterValidator(_absolute)] = Field(
        default_factory=lambda: platformdirs.user_cache_path("specbuild")
    )
    """Where the store and the caches of package managers lie. Not on overlayfs, NFS or tmpfs of little size."""
    bases: tuple[str, ...] = ("auto",)
    """`auto`, or names of bases in order of preference: `host`, `debian:bookworm`, …"""
    debian_mirror: str | None = None
    """Address of a Debian archive to make bases from, instead of the host's own mirrors."""
    backend: str = "auto"
    jobs: Annotated[int, Field(ge=1)] | None = None
    """Steps that run at once; default: one more than the usable cores."""
    sequential: bool = False
    """One slot and one recipe at a time: the baseline."""
    strategies: tuple[str, ...] = ()
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
    memory_bytes: Annotated[int, Field(gt=0)] | None = None
    """For each sandbox; default: three quarters of the machine's memory."""
    disk_bytes: Annotated[int, Field(gt=0)] | None = 20 << 30
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
            PyprojectTomlConfigSettingsSource(settings_cls),
        )

    @property
    def slots(self) -> int:
        """Steps that run at once."""
        if self.sequential:
            return 1
        return self.jobs or len(os.sched_getaffinity(0)) + 1


def load_settings(**given: object) -> Settings:
    """Settings with `given` arguments (None means not given) over variables and files.

    Raises ConfigError with every value that makes no sense.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, e['loc']))}: {e['msg']} (given: {e['input']!r})" for e in error.errors()]
        raise ConfigError(
            "these settings make no sense:\n" + "\n".join(lines),
            hint="see `specbuild build --help` for what each takes",
        ) from error
