"""Names of images: `python:3.9`, `ghcr.io/owner/name@sha256:…`, `localhost:5000/tool`.

The grammar is that of the distribution project's `reference` package, which Docker and Podman share.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from specbuild.errors import UsageError

DEFAULT_REGISTRY = "docker.io"
"""What a name without a registry means, to Docker and so to everybody who copies a line from somewhere."""
_OFFICIAL = "library/"
_OTHER_NAMES = {"index.docker.io": DEFAULT_REGISTRY, "registry-1.docker.io": DEFAULT_REGISTRY}
_LONGEST = 255

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?", re.ASCII)
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*", re.ASCII)
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reference:
    """The name of an image, with everything that is left out by habit filled in."""

    registry: str
    """Host, perhaps with a port."""
    repository: str
    tag: str | None = None
    digest: str | None = None
    """`sha256:…`; counts before the tag."""

    @property
    def wanted(self) -> str:
        """What a registry is asked for: the digest, or else the tag."""
        return self.digest or self.tag or "latest"

    @property
    def name(self) -> str:
        """Without tag and digest."""
        return f"{self.registry}/{self.repository}"

    def pinned(self, digest: str) -> Reference:
        """The same name at exactly that content. Raises UsageError for a digest that nothing can be checked by."""
        if not is_digest(digest):
            raise _bad(f"{self.name}@{digest[:200]}", "it pins nothing")
        return replace(self, digest=digest)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.name}{tag}{f'@{self.digest}' if self.digest else ''}"

    @property
    def familiar(self) -> str:
        """As people write it: without what Docker fills in."""
        text = str(self)
        if self.registry == DEFAULT_REGISTRY:
            text = text.removeprefix(f"{DEFAULT_REGISTRY}/").removeprefix(_OFFICIAL)
        return text


def is_digest(text: str) -> bool:
    """Whether that is a digest of a kind that can be checked here."""
    return _DIGEST.fullmatch(text) is not None


def parse_reference(text: str) -> Reference:
    """The Reference that `text` stands for; the tag is `latest` where neither tag nor digest is given.

    Raises UsageError for what is none.
    """
    rest, at, digest = text.removeprefix("docker://").partition("@")
    if at and not is_digest(digest):
        raise _bad(text, f"{digest!r} is no digest (sha256: and 64 lower-case hexadecimal digits)")
    name, tag = _split_tag(rest)
    if tag is not None and not _TAG.fullmatch(tag):
        raise _bad(text, f"{tag!r} is no tag")
    registry, repository = _split_registry(name)
    if not _HOST.fullmatch(registry):
        raise _bad(text, f"{registry!r} is no host")
    if not _REPOSITORY.fullmatch(repository):
        raise _bad(text, f"{repository!r} is no repository (lower case, parts divided by `/`, `.`, `_` or `-`)")
    if len(registry) + 1 + len(repository) > _LONGEST:
        raise _bad(text, f"it is longer than {_LONGEST} characters")
    return Reference(registry, repository, tag or (None if digest else "latest"), digest or None)


def _split_tag(text: str) -> tuple[str, str | None]:
    """The colon of a port stands before a slash, that of a tag never."""
    head, colon, tail = text.rpartition(":")
    return (head, tail) if colon and "/" not in tail else (text, None)


def _split_registry(name: str) -> tuple[str, str]:
    """The first part is a registry if it could be no part of a repository on Docker's own, or is `localhost`."""
    first, slash, rest = name.partition("/")
    if slash and (first == "localhost" or any(sign in first for sign in ".:") or first != first.lower()):
        first = _OTHER_NAMES.get(first, first)
        official = first == DEFAULT_REGISTRY and "/" not in rest
        return first, _OFFICIAL + rest if official else rest
    return DEFAULT_REGISTRY, name if slash else _OFFICIAL + name


def _bad(text: str, why: str) -> UsageError:
    return UsageError(
        f"{text!r} is no name of an image: {why}", hint="as in python:3.12, ghcr.io/owner/name:tag or name@sha256:…"
    )
