"""The Environment as a Dockerfile: complete in itself, strict, and the same for the same Environment.

It is written for every builder there is: Docker's first one, BuildKit, and Buildah in Podman. See `exec_form`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from specbuild.environment import Environment
from specbuild.export.exec_form import exec_form
from specbuild.export.image import labels, test_command
from specbuild.export.text import comment, committed, fetchable, headline, one_line, title_of
from specbuild.recipe import CLEAR_SOURCE, SHELL, SOURCE_DIR, BaseRef, Check, Step, StepKind
from specbuild.sandbox.passthrough import base_environment

_HOW_TO = """
Build:
  {build}
Run the tests:
  docker run --rm NAME
With Podman it is the same. Proxies are passed on by the builders themselves; for a certificate authority of your own or
a package index of your own add, for example
  --build-arg CA_CERTIFICATE="$(cat ca.pem)" --build-arg PIP_INDEX_URL=https://mirror/simple
They do not get into files of the image, but its history tells them: no passwords.
"""
"""What a reader of the file needs to know; `build` is the command."""

_ARGUMENTS = (
    "CA_CERTIFICATE",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
)
"""What a builder may be given besides proxies, which it knows; without a value they are not set."""

_TRUST = """\
if [ -n "${CA_CERTIFICATE-}" ]; then
  ca=/tmp/specbuild-ca.pem; trap 'rm -f /tmp/specbuild-ca.pem' EXIT
  { [ ! -r /etc/ssl/certs/ca-certificates.crt ] || cat /etc/ssl/certs/ca-certificates.crt; \
printf '%s\\n' "$CA_CERTIFICATE"; } >$ca
  export SSL_CERT_FILE=$ca REQUESTS_CA_BUNDLE=$ca PIP_CERT=$ca CURL_CA_BUNDLE=$ca GIT_SSL_CAINFO=$ca
fi"""
"""Begins the script of each step that may use the network."""

_WITHOUT_CACHE = {"pip": ("PIP_NO_CACHE_DIR", "1"), "uv": ("UV_NO_CACHE", "1")}
"""Variables that keep downloads out of the image."""

_FETCH_TOOLS = {"git": ("git",), "curl": ("curl",), "wget": ("wget",), "pip": ("python3-pip",), "unzip": ("unzip",)}


def dockerfile(environment: Environment) -> str:
    """The text of a Dockerfile that builds the environment from its base, and runs the tests by default.

    Raises UsageError for an Environment without a verified Recipe.
    """
    base, recipe, check = committed(environment)
    fetched = fetchable(environment)
    image, remarks = _image(base)
    build = "docker build -t NAME - < Dockerfile" if fetched else "docker build -t NAME -f Dockerfile SOURCE"
    env = {**base_environment(base), **dict(recipe.test_env)}
    parts = [
        comment("\n".join(headline(environment))),
        comment(_HOW_TO.format(build=build).strip()),
        f"{comment(remarks)}\nARG BASE={image}",
        *([_source_stage(environment)] if fetched else []),
        f"FROM ${{BASE}}\n{_arguments()}",
        _env(base_environment(base).items()),
        *_steps(recipe.steps, environment, fetched=fetched),
        _env(recipe.test_env),
        _labels(environment),
        _tests(check, {name: value for name, value in env.items() if _can_be_said(value)}),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def dockerfile_base(base: BaseRef) -> str:
    """The image that a Dockerfile starts from, unless it is told another."""
    return _image(base)[0]


def _image(base: BaseRef) -> tuple[str, str]:
    """The image to start from, and what is to be said of it."""
    other = "Another image: --build-arg BASE=IMAGE"
    if not base.portable:
        image = f"debian:{base.release}" if base.release else "debian:stable"
        return image, (
            f"Verified on the running system of one machine ({base.name}), which cannot be had elsewhere.\n"
            f"{image} is the nearest image; the environment was not verified on it, and packages that were\n"
            f"installed on that machine beforehand may be missing here. {other}"
        )
    if base.name.startswith("debian:"):
        return base.name, (
            f"Verified on a root filesystem of {base.name} that was made from its packages ({base.digest});\n"
            f"the image of the same name holds packages of the same release. {other}"
        )
    if base.name.startswith("engine:"):
        image = base.name.removeprefix("engine:")
        return image, f"Verified on the image {image} of one machine's engine, with the id {base.digest}. {other}"
    name = base.name.partition("@")[0]
    pinned = f"{name}@{base.digest}" if base.digest.startswith("sha256:") else base.name
    return pinned, f"Verified on this very image ({base.name}). {other}"


def _arguments() -> str:
    return "\n".join(f"ARG {name}" for name in _ARGUMENTS)


def _source_stage(environment: Environment) -> str:
    """Fetches the tree beside the environment, so that the tools for it do not get into it."""
    fetch = environment.repo.fetch
    words = set(re.findall(r"[\w.-]+", fetch))
    if "curl" in words:
        words.discard("wget")  # it is the other way to do the same
    tools = ["ca-certificates", *(tool for word, tools in _FETCH_TOOLS.items() if word in words for tool in tools)]
    body = f"apt-get update -qq\napt-get install -y -qq --no-install-recommends {shlex.join(sorted(tools))}"
    return "\n".join(
        [
            comment("The source tree"),
            f"FROM ${{BASE}} AS source\nLABEL specbuild.environment={environment.id}\n{_arguments()}",
            _run(body, [("DEBIAN_FRONTEND", "noninteractive")]),
            *_clearing(environment),
            f"WORKDIR {SOURCE_DIR}",
            _run(fetch, [("GIT_TERMINAL_PROMPT", "0")], network=True),
        ]
    )


def _steps(steps: Iterable[Step], environment: Environment, *, fetched: bool) -> Iterator[str]:
    folder = ""
    for step in steps:
        if step.kind is StepKind.SOURCE:
            yield _source(environment, fetched=fetched)
            continue
        lines = [comment(title_of(step))]
        if not step.network:
            lines.append(comment("(verified without network)"))
        if step.cwd != folder:
            folder = step.cwd
            lines.append(f"WORKDIR {_quoted(folder)}")
        without = (_WITHOUT_CACHE[name] for name in step.caches if name in _WITHOUT_CACHE)
        body = f"{step.run}\napt-get clean" if "apt" in step.caches else step.run
        lines.append(_run(body, [*step.env, *without], network=step.network))
        yield "\n".join(lines)


def _source(environment: Environment, *, fetched: bool) -> str:
    if fetched:
        return "\n".join([*_clearing(environment), f"COPY --from=source {SOURCE_DIR} {SOURCE_DIR}"])
    what = (
        f"The source tree, whole (digest {environment.repo.digest}); a .dockerignore in it must not leave out anything"
    )
    return "\n".join([comment(what), *_clearing(environment), f"COPY . {SOURCE_DIR}"])


def _clearing(environment: Environment) -> list[str]:
    return [_run(CLEAR_SOURCE.run, ())] if environment.base and environment.base.is_image else []


def _run(body: str, env: Iterable[tuple[str, str]], *, network: bool = False) -> str:
    """One RUN with everything that belongs to a Step; it fails when any of its commands does."""
    return "RUN " + exec_form("\n".join([*([_TRUST] if network else []), *_exports(env), body]))


def _exports(env: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in env:
        yield f"export {name}={shlex.quote(value)}"


def _tests(check: Check, env: dict[str, str]) -> str:
    """The test command as what the image runs."""
    remarks = f"The test command: {one_line(check.reason or check.runner)}"
    if not check.step.network:
        remarks += "\nIt was verified without network: docker run --rm --network=none NAME"
    return f"{comment(remarks)}\nWORKDIR {SOURCE_DIR}\nCMD {exec_form(test_command(check, env)[-1], SHELL)}"


def _env(env: Iterable[tuple[str, str]]) -> str:
    """One ENV; a value with a line end cannot be said in it and is left to the test command, which has its own."""
    pairs = [f"{name}={_quoted(value)}" for name, value in env if _can_be_said(value)]
    return "ENV " + " \\\n    ".join(pairs) if pairs else ""


def _can_be_said(value: str) -> bool:
    """Whether ENV can hold it."""
    return "\n" not in value


def _labels(environment: Environment) -> str:
    skipped = "org.opencontainers.image.created"  # the builder's to tell
    pairs = [f"{name}={_quoted(one_line(value))}" for name, value in labels(environment).items() if name != skipped]
    return "LABEL " + " \\\n      ".join(pairs)


def _quoted(value: str) -> str:
    """A value in a Dockerfile instruction, of which nothing is expanded."""
    if re.fullmatch(r"[\w./:@%+,=-]+", value):
        return value
    return '"' + re.sub(r'(["\\$])', r"\\\1", value) + '"'
