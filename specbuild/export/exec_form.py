r"""Shell scripts as arguments of a Dockerfile's instructions, in the form that every builder reads alike.

Heredocs are for BuildKit and new versions of Podman only. The exec form, a list in JSON, is read by Docker's first
builder, by BuildKit and by Buildah, and none of them expands anything in it. A backslash at a line's end is taken away
with the line end before the JSON is read, so a script can have a line of the file for each line of its own:

    RUN ["/bin/sh", "-eu", "-c", "\
    apt-get update\n\
    "]

Three things must not be seen by the readers of lines: a line that begins like a comment (it would be dropped), a
backslash before that last one, and `<<` (BuildKit looks for heredocs).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from specbuild.recipe import SHELL

_LONGEST = 5_000
"""Characters of a line of the file: Docker's readers take 65,535 bytes, of which an escaped character can take 12."""


def exec_form(script: str, words: Sequence[str] = SHELL) -> str:
    """`["/bin/sh", "-eu", "-c", "…"]` for a script, over as many lines as it has; its last line is ended."""
    begin = ", ".join(json.dumps(word) for word in words)
    body = "".join(_encoded_line(line) for line in script.removesuffix("\n").split("\n"))
    return f'[{begin}, "\\\n{body}"]'


def _encoded_line(line: str) -> str:
    pieces = [line[start : start + _LONGEST] for start in range(0, len(line), _LONGEST)] or [""]
    return "\\\n".join(_encoded(piece) for piece in pieces) + "\\n\\\n"


def _encoded(piece: str) -> str:
    text = json.dumps(piece, ensure_ascii=not piece.isprintable())[1:-1]
    if text.lstrip().startswith("#"):
        text = text.replace("#", "\\u0023", 1)
    if piece.endswith("\\"):
        text = text.removesuffix("\\\\") + "\\u005c"
    return re.sub(r"^<|<(?=<)|<$", r"\\u003c", text)
