"""Scripts in the exec form come out as they went in, by the rules of every reader of Dockerfiles."""

from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from specbuild.export.exec_form import exec_form

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200)
NASTY = st.lists(
    st.sampled_from(
        ["#include <x>", "  # y", "", "   ", "a \\", "\\\\", "<<EOF", "cat <<'E'", '"', "'", "$x", "\t", "\r"]
    )
).map("\n".join)


def instructions(text: str) -> list[str]:
    """The logical lines of a Dockerfile, as the readers of Docker's first builder, BuildKit and Buildah make them."""
    found: list[str] = []
    pending = ""
    for line in text.split("\n"):
        assert len(line.encode()) < 65_535, "longer than Docker's readers take"
        if line.lstrip().startswith("#") or (pending and not line.strip()):
            continue
        # The newest reader wants no backslash before the last one, the others do not care.
        if re.search(r"(?:^|[^\\])\\[ \t]*$", line):
            pending += re.sub(r"\\[ \t]*$", "", line)
            continue
        assert not re.search(r"\\[ \t]*$", line), "readers differ on this line"
        found.append(pending + line)
        pending = ""
    assert not pending
    return [line for line in found if line.strip()]


def script_of(form: str) -> str:
    (instruction,) = instructions(f"RUN {form}")
    assert "<<" not in instruction, "BuildKit would look for a heredoc"
    words = json.loads(instruction.removeprefix("RUN "))
    assert words[:-1] == ["/bin/sh", "-eu", "-c"]
    return str(words[-1])


@settings(deadline=None)
@given(st.one_of(TEXT, NASTY))
def test_a_script_comes_out_as_it_went_in(script: str) -> None:
    assert script_of(exec_form(script)) == script.removesuffix("\n") + "\n"


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(["x", "\\", "<", "#", " ", "é", "\x07", "\U000e0001"]), st.integers(4_990, 40_000))
def test_long_lines_are_divided(character: str, count: int) -> None:
    assert script_of(exec_form(character * count)) == character * count + "\n"


def test_a_line_of_the_script_is_a_line_of_the_file() -> None:
    assert exec_form("set -e\n\nmake") == '["/bin/sh", "-eu", "-c", "\\\nset -e\\n\\\n\\n\\\nmake\\n\\\n"]'
