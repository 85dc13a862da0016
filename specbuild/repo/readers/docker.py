"""Dockerfiles: an instruction splitter with continuations and here-documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import basename
from typing import cast

from specbuild.repo.facts import DockerImage, Fact
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.tree import Tree, clean

MAX_FILES = 10
MAX_INSTRUCTIONS = 500
_HEREDOC = re.compile(r"<<-?\s*([\"']?)(\w+)\1")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile."""

    name: str
    """Upper case."""
    value: str
    """With continuations joined by a space and here-documents kept as they are."""
    line: int


def read(tree: Tree, found: Findings) -> None:
    """One image for each stage that runs something: what it is from, and its RUN lines."""
    for file in _files(tree)[:MAX_FILES]:
        _stages(tree, found, file)


def _files(tree: Tree) -> list[str]:
    named = [
        path
        for path in tree.files
        if re.fullmatch(r"(dockerfile|containerfile)([._-][\w.-]+)?|[\w.-]+\.dockerfile", basename(path), re.IGNORECASE)
        and path.count("/") <= 2
        and not path.endswith((".md", ".rst", ".py", ".in", ".dockerignore"))
    ]
    return sorted(named, key=lambda path: (path.count("/"), len(path)))


def _stages(tree: Tree, found: Findings, file: str) -> None:
    values: dict[str, str] = {}
    image: Instruction | None = None
    aliases: dict[str, str] = {}
    run: list[Fact[str]] = []
    folder = ""

    def finish() -> None:
        if image is not None and run:
            name = _image_of(image.value, values)
            evidence = tree.evidence(file, image.line)
            found.docker.append(DockerImage(image=aliases.get(name, name), run=tuple(run), evidence=evidence))

    for instruction in instructions("\n".join(tree.lines(file))):
        match instruction.name:
            case "FROM":
                finish()
                image, run, folder = instruction, [], ""
                if alias := re.search(r"\sas\s+(\S+)", instruction.value, re.IGNORECASE):
                    name = _image_of(instruction.value, values)
                    aliases[alias[1]] = aliases.get(name, name)
            case "ARG" | "ENV":
                pairs = _pairs(instruction.value)
                values.update(pairs)
                if image is not None and instruction.name == "ENV":
                    exports = " ".join(f"{key}={_quoted(value)}" for key, value in pairs.items())
                    run.append(Fact(value=f"export {exports}", evidence=tree.evidence(file, instruction.line)))
            case "WORKDIR":
                folder = instruction.value.strip()
            case "RUN" if image is not None:
                command = _command(instruction.value)
                command = f"cd {folder}\n{command}" if folder else command
                run.append(Fact(value=command, evidence=tree.evidence(file, instruction.line)))
            case _:
                pass
    finish()


def instructions(text: str) -> Iterator[Instruction]:
    """The instructions of a Dockerfile in order."""
    lines = text.split("\n")
    escape = "`" if re.search(r"^#\s*escape\s*=\s*`", text[:500], re.MULTILINE | re.IGNORECASE) else "\\"
    index = count = 0
    while index < len(lines) and count < MAX_INSTRUCTIONS:
        start = index
        parts, index = _joined(lines, index, escape)
        match = re.match(r"\s*([A-Za-z]+)\s+(.*)", " ".join(parts), re.DOTALL)
        if not match or lines[start].lstrip().startswith("#"):
            continue
        name, value = match[1].upper(), match[2].strip()
        if name in ("RUN", "COPY", "ADD"):
            for heredoc in list(_HEREDOC.finditer(value))[:10]:
                body, index = _until(lines, index, heredoc[2])
                value += "\n" + "\n".join([*body, heredoc[2]])
        count += 1
        yield Instruction(name, value, start + 1)


def _joined(lines: list[str], index: int, escape: str) -> tuple[list[str], int]:
    """A line with its continuations; comments and empty lines between them are dropped, as Docker drops them."""
    parts: list[str] = []
    while index < len(lines):
        line = lines[index].rstrip()
        index += 1
        if parts and (not line.strip() or line.lstrip().startswith("#")):
            continue
        parts.append(line.removesuffix(escape).strip())
        if not line.endswith(escape) or line.lstrip().startswith("#"):
            break
    return parts, index


def _until(lines: list[str], index: int, delimiter: str) -> tuple[list[str], int]:
    body: list[str] = []
    while index < len(lines):
        line = lines[index]
        index += 1
        if line.strip() == delimiter:
            break
        body.append(line)
    return body, index


def _command(value: str) -> str:
    """The shell command of a RUN line: no mount flags, an exec form written out, a bare here-document as its script."""
    value = re.sub(r"^(--\w+(?:=\S+)?\s+)+", "", value)
    if script := re.fullmatch(r"<<-?([\"']?)(\w+)\1\n(.*)\n\2", value, re.DOTALL):
        return script[3]
    if value.startswith("["):
        try:
            words: object = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return " ".join(_quoted(clean(str(word))) for word in cast("list[object]", words))
    return value


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w./:,@%+=$-]+", word) else '"' + word.replace('"', '\\"') + '"'


def _image_of(value: str, values: dict[str, str]) -> str:
    image = re.sub(r"^(--\w+=\S+\s+)+", "", value).split(" ")[0]
    return re.sub(
        r"\$\{(\w+)(?::-([^}]*))?\}|\$(\w+)",
        lambda match: values.get(match[1] or match[3]) or match[2] or match[0],
        image,
    )


def _pairs(value: str) -> dict[str, str]:
    """`A=1 B="2 3"`, or the old form `A 1`; an ARG without a default gives nothing."""
    pairs = re.findall(r"""([A-Za-z_]\w*)=("(?:[^"\\]|\\.)*"|'[^']*'|\S*)""", value)
    if pairs:
        return {name: text.strip("\"'") for name, text in pairs}
    name, _, text = value.partition(" ")
    return {name: text.strip()} if text.strip() and name.isidentifier() else {}
