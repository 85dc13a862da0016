"""The Environment as a Dockerfile: complete in itself, strict, and the same for the same Environment."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from specbuild.environment import Environment
from specbuild.export.text import comment, committed, fetchable, headline, heredoc, one_line, title_of
from specbuild.recipe import SOURCE_DIR, BaseRef, Check, Step, StepKind
from specbuild.sandbox.passthrough import base_environment

TEST_COMMAND = "/usr/local/bin/run-tests"
"""The test command in the image."""

_CACHES = {
    "apt": "--mount=type=cache,target=/var/cache/apt,sharing=locked",
    "pip": "--mount=type=cache,target=/root/.cache/pip",
    "uv": "--mount=type=cache,target=/root/.cache/uv",
}
"""Shared caches of Steps; as mounts they do not get into the image."""

_SECRETS = "--mount=type=secret,id=settings --mount=type=secret,id=ca,mode=0444"
_USE_SETTINGS = "[ ! -r /run/secrets/settings ] || . /run/secrets/settings"

_HOW_TO = """
Build (Docker 23 or newer, or Podman 4.9):
  {build}
Run the tests:
  docker run --rm NAME
Behind a proxy, an own certificate authority or a package mirror, put the settings into a file, for example
  export https_proxy=http://proxy:3128 SSL_CERT_FILE=/run/secrets/ca PIP_INDEX_URL=https://mirror/simple
and add to the build: --secret id=settings,src=FILE --secret id=ca,src=CA.pem
Neither file gets into the image.
"""
"""What a reader of the file needs to know; `build` is the command."""

_FETCH_TOOLS = {"git": ("git",), "curl": ("curl",), "wget": ("wget",), "pip": ("python3-pip",), "unzip": ("unzip",)}


def dockerfile(environment: Environment) -> str:
    """The text of a Dockerfile that builds the environment from its base, and runs the tests by default.

    Raises UsageError for an Environment without a verified Recipe.
    """
    base, recipe, check = committed(environment)
    fetched = fetchable(environment)
    image, remarks = _image(base)
    build = "docker build -t NAME - < Dockerfile" if fetched else "docker build -t NAME -f Dockerfile SOURCE"
    parts = [
        comment("\n".join(headline(environment))),
        comment(_HOW_TO.format(build=build).strip()),
        *([_source_stage(environment, image)] if fetched else []),
        comment(remarks),
        f'FROM {image}\nSHELL ["/bin/sh", "-eu", "-c"]\n{_env(base_environment(base).items())}',
        *(_step(step, environment, fetched=fetched) for step in recipe.steps),
        _env(recipe.test_env),
        _tests(check),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _image(base: BaseRef) -> tuple[str, str]:
    """The image to start from, and what is to be said of it."""
    if not base.portable:
        image = f"debian:{base.release}" if base.release else "debian:stable"
        return image, (
            f"Verified on the running system of one machine ({base.name}), which cannot be had elsewhere.\n"
            f"{image} is the nearest image; the environment was not verified on it, and packages that were\n"
            "installed on that machine beforehand may be missing here."
        )
    if base.name.startswith("debian:"):
        return base.name, (
            f"Verified on a root filesystem of {base.name} that was made from its packages ({base.digest});\n"
            "the image of the same name holds packages of the same release."
        )
    if base.name.startswith("engine:"):
        image = base.name.removeprefix("engine:")
        return image, f"Verified on the image {image} of one machine's engine, with the id {base.digest}."
    pinned = f"{base.name.partition('@')[0]}@{base.digest}"
    return pinned, f"Verified on this very image ({base.name})."


def _source_stage(environment: Environment, image: str) -> str:
    """Fetches the tree beside the environment, so that the tools for it do not get into it."""
    fetch = environment.repo.fetch
    words = set(re.findall(r"[\w.-]+", fetch))
    tools = ["ca-certificates", *(tool for word, tools in _FETCH_TOOLS.items() if word in words for tool in tools)]
    body = f"apt-get update -qq\napt-get install -y -qq --no-install-recommends {shlex.join(sorted(tools))}"
    return "\n".join(
        [
            comment("The source tree"),
            f'FROM {image} AS source\nSHELL ["/bin/sh", "-eu", "-c"]',
            _run(body, [("DEBIAN_FRONTEND", "noninteractive")], network=True),
            f"WORKDIR {SOURCE_DIR}",
            _run(fetch, [("GIT_TERMINAL_PROMPT", "0")], network=True),
        ]
    )


def _step(step: Step, environment: Environment, *, fetched: bool) -> str:
    if step.kind is StepKind.SOURCE:
        return _source(environment, fetched=fetched)
    mounts = [_CACHES[name] for name in step.caches if name in _CACHES]
    return "\n".join(
        [
            comment(title_of(step)),
            f"WORKDIR {_quoted(step.cwd)}",
            _run(step.run, step.env, mounts, network=step.network),
        ]
    )


def _source(environment: Environment, *, fetched: bool) -> str:
    if fetched:
        return f"COPY --from=source {SOURCE_DIR} {SOURCE_DIR}"
    what = (
        f"The source tree, whole (digest {environment.repo.digest}); a .dockerignore in it must not leave out anything"
    )
    return f"{comment(what)}\nCOPY . {SOURCE_DIR}"


def _run(body: str, env: Iterable[tuple[str, str]], mounts: Iterable[str] = (), *, network: bool) -> str:
    """One RUN with everything that belongs to a Step; it fails when any of its commands does."""
    options = [*mounts, _SECRETS if network else "--network=none"]
    lines = ["set -eu", *([_USE_SETTINGS] if network else []), *_exports(env), body]
    delimiter, text = heredoc("\n".join(lines), "STEP")
    return f"RUN {' '.join(options)} <<'{delimiter}'\n{text}{delimiter}"


def _exports(env: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in env:
        yield f"export {name}={shlex.quote(value)}"


def _tests(check: Check) -> str:
    """The test command as a file of the image, written out here, and as what the image runs."""
    step = check.whole
    lines = ["#!/bin/sh", "set -eu", *_exports(step.env), f"cd {shlex.quote(step.cwd)}", step.run]
    delimiter, text = heredoc("\n".join(lines), "TESTS")
    remarks = f"The test command: {one_line(check.reason or check.runner)}"
    if not step.network:
        remarks += "\nIt was verified without network: docker run --rm --network=none NAME"
    return (
        f"{comment(remarks)}\n"
        f"COPY --chmod=0755 <<'{delimiter}' {TEST_COMMAND}\n{text}{delimiter}\n"
        f'WORKDIR {SOURCE_DIR}\nCMD ["{TEST_COMMAND}"]'
    )


def _env(env: Iterable[tuple[str, str]]) -> str:
    """One ENV; a value with a line end cannot be said in it and is left to the test command, which has its own."""
    pairs = [f"{name}={_quoted(value)}" for name, value in env if "\n" not in value]
    return "ENV " + " \\\n    ".join(pairs) if pairs else ""


def _quoted(value: str) -> str:
    """A value in a Dockerfile instruction, of which nothing is expanded."""
    if re.fullmatch(r"[\w./:@%+,=-]+", value):
        return value
    return '"' + re.sub(r'(["\\$])', r"\\\1", value) + '"'
