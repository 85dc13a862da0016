"""Reading never raises, never hangs and never leaves the tree, whatever a Repo holds."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specbuild.repo.facts import Facts
from specbuild.repo.inspect import READERS, inspect
from specbuild.repo.readers.findings import Findings
from specbuild.repo.readers.tree import Tree

GOLDEN = Path(__file__).parent.parent / "repos"

MANIFESTS = (
    "pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", "PKG-INFO", "demo.egg-info/requires.txt", "tox.ini",
    "tox.toml", "noxfile.py", "Pipfile", "Pipfile.lock", "environment.yml", ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".travis.yml", ".circleci/config.yml", "azure-pipelines.yml", "appveyor.yml", "Makefile", "Dockerfile",
    ".devcontainer/devcontainer.json", "README.md", "README.rst", "meson.build", "CMakeLists.txt", "Cargo.toml",
    "tests/test_demo.py", "tests/conftest.py", "pytest.ini", "pytest.toml", "manage.py", "CHANGES.rst",
)  # fmt: skip
"""One path for each kind of file that some reader opens."""

EXAMPLES = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read_all(root: Path) -> Facts:
    """Every reader without the net that `inspect` puts below them."""
    tree, found = Tree(root), Findings()
    for reader in READERS.values():
        reader(tree, found)
    facts = found.facts(tree.warnings)
    assert Facts.model_validate_json(facts.model_dump_json()) == facts
    return facts


def write(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@EXAMPLES
@given(st.sampled_from(MANIFESTS), st.binary(max_size=400))
def test_no_reader_raises_on_random_bytes(name: str, content: bytes) -> None:
    with TemporaryDirectory() as folder:
        write(Path(folder), {name: content})
        read_all(Path(folder))


@EXAMPLES
@given(st.sampled_from(MANIFESTS), st.text(alphabet="[]{}()<>=:,.-_'\"\\#$%&*|!?@\n\t abpy0123", max_size=300))
def test_no_reader_raises_on_text_of_punctuation(name: str, content: str) -> None:
    with TemporaryDirectory() as folder:
        write(Path(folder), {name: content.encode()})
        read_all(Path(folder))


def golden_manifests() -> list[Path]:
    inside = (path for path in GOLDEN.glob("*/**/*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(inside)


def mutated(content: bytes, seed: int) -> bytes:
    """The content with a few lines dropped, doubled or swapped and a few bytes changed, the same for the same seed."""
    choose = random.Random(seed)  # noqa: S311 - reproducible damage, no secret
    lines = content.split(b"\n")
    for _ in range(choose.randint(1, 6)):
        position = choose.randrange(len(lines))
        match choose.randrange(4):
            case 0:
                lines[position] = b""
            case 1:
                lines.insert(position, choose.choice(lines))
            case 2:
                lines[position] = lines[position].lstrip() if choose.random() < 0.5 else b"  " + lines[position]
            case _:
                line = bytearray(lines[position] or b"x")
                line[choose.randrange(len(line))] = choose.choice(b"{}[]()'\":,=\\\0\xff-#\n 5")
                lines[position] = bytes(line)
    return b"\n".join(lines)


@settings(EXAMPLES, max_examples=300)
@given(st.sampled_from(golden_manifests()), st.integers(0, 2**32))
def test_no_reader_raises_on_damaged_manifests(source: Path, seed: int) -> None:
    name = "/".join(source.relative_to(GOLDEN).parts[1:])
    with TemporaryDirectory() as folder:
        write(Path(folder), {name: mutated(source.read_bytes(), seed)})
        read_all(Path(folder))


CI_KEYS = [
    "jobs",
    "strategy",
    "matrix",
    "include",
    "exclude",
    "steps",
    "run",
    "with",
    "env",
    "python",
    "image",
    "services",
    "script",
    "test",
    "on",
    "runs-on",
    "extends",
    "variables",
    "parallel",
    "docker",
    "os",
    "uses",
    "python-version",
    "default",
    "working-directory",
    "container",
    "pool",
    "vmImage",
]
DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(CI_KEYS), inner, max_size=5),
    max_leaves=30,
)
CI_FILES = [name for name in MANIFESTS if name.endswith(".yml") and name != "environment.yml"]


@settings(EXAMPLES, max_examples=60)
@given(DOCUMENTS)
def test_no_ci_reader_raises_on_misplaced_types(document: object) -> None:
    # JSON is YAML.
    content = json.dumps({"jobs": {"test": document}, "test": document, "matrix": document}).encode()
    with TemporaryDirectory() as folder:
        write(Path(folder), dict.fromkeys(CI_FILES, content))
        read_all(Path(folder))


def test_links_out_of_the_tree_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.toml"
    secret.write_text('[project]\nname = "secret"\n')
    root = tmp_path / "repo"
    root.mkdir()
    (root / "pyproject.toml").symlink_to(secret)
    (root / "tests").symlink_to(tmp_path)
    facts = inspect(root)
    assert facts.name is None
    assert "secret" not in facts.model_dump_json()


def test_links_inside_the_tree_are_read(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text('[project]\nname = "inside"\n')
    (tmp_path / "pyproject.toml").symlink_to("real.toml")
    facts = inspect(tmp_path)
    assert facts.name is not None
    assert facts.name.value == "inside"


def test_a_file_that_becomes_a_link_between_listing_and_reading_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("token")
    root = tmp_path / "repo"
    root.mkdir()
    (root / "setup.cfg").write_text("")
    tree = Tree(root)
    assert tree.has("setup.cfg")
    (root / "setup.cfg").unlink()
    (root / "setup.cfg").symlink_to(tmp_path / "secret")
    assert tree.text("setup.cfg") is None
    assert "leads out" in tree.warnings[0].value


def test_link_loops_end(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "setup.py").symlink_to("setup.py")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").symlink_to("..")
    assert inspect(tmp_path).build_backend is None


@pytest.mark.parametrize("name", ["setup.py", "pyproject.toml", ".travis.yml", "README.md", "tests/test_x.py"])
def test_fifos_do_not_block(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / name)
    assert inspect(tmp_path).build_backend is None


def test_a_file_that_becomes_a_fifo_does_not_block(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("")
    tree = Tree(tmp_path)
    assert tree.has("setup.py")
    (tmp_path / "setup.py").unlink()
    os.mkfifo(tmp_path / "setup.py")
    assert tree.text("setup.py") is None


def yaml_bomb() -> bytes:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    return "\n".join([*levels, "jobs: *a29"]).encode()


def include_rings() -> dict[str, bytes]:
    return {
        "requirements.txt": b"-r dev-requirements.txt\n",
        "dev-requirements.txt": b"-r requirements.txt\n",
        "setup.cfg": b"[options]\ninstall_requires = file: requirements.txt\n",
        "pyproject.toml": b"[dependency-groups]\na = [{include-group = 'b'}]\nb = [{include-group = 'a'}]\n",
    }


def doubling_groups() -> dict[str, bytes]:
    groups = ["g0 = ['x', 'y']"]
    groups += [f"g{n} = [{{include-group = 'g{n - 1}'}}, {{include-group = 'g{n - 1}'}}]" for n in range(1, 19)]
    return {"pyproject.toml": "\n".join(["[dependency-groups]", *groups]).encode()}


def vast_matrices() -> dict[str, bytes]:
    axes = ", ".join(f"a{n}: [1,2,3,4,5,6,7,8,9]" for n in range(20))
    names = "{a,b,c,d,e,f,g,h}-" * 12
    return {
        ".github/workflows/ci.yml": (
            f"jobs: {{t: {{runs-on: ubuntu-latest, strategy: {{matrix: {{{axes}}}}}, steps: [{{run: pytest}}]}}}}"
        ).encode(),
        "tox.ini": f"[tox]\nenvlist = {names}x\n[testenv]\ndeps = {{[testenv]deps}}\n".encode(),
    }


def growth_in_python() -> dict[str, bytes]:
    return {
        "setup.py": b"s = 'aaaaaaaaaa'\nx = ['a']\n"
        + b"s += s\nx.extend(x)\nx += x\n" * 200
        + b"setup(name=s, requires=x)",
        "noxfile.py": b"x = " + b" + ".join([b"['a']"] * 3_000),
    }


def awkward_lines() -> dict[str, bytes]:
    lines = [b"[" * 3_000, b"((((" * 2_000, b"- " * 5_000, b"a-" * 5_000, b" " * 20_000 + b"x", b"\\\n" * 3_000]
    return dict.fromkeys(MANIFESTS, b"\n".join(lines))


def many_tests() -> dict[str, bytes]:
    content = b"\n".join(b"import module%d" % n for n in range(2_000))
    return {f"tests/test_{n}.py": content for n in range(800)}


def surrogates() -> dict[str, bytes]:
    return {
        "setup.py": b"setup(name='\\ud800', install_requires=['a\\udfff'])",
        ".travis.yml": b'script: "\\ud800 pytest"\n',
        "tests/conftest.py": b"pytest_plugins = ['\\ud800.x', 'a\\udfff']\nimport \xed\xa0\x80",
        ".devcontainer.json": b'{"image": "\\ud800", "postCreateCommand": "pip install \\udc00"}',
    }


HOSTILE: dict[str, Callable[[], dict[str, bytes]]] = {
    "exponential aliases": lambda: {".github/workflows/ci.yml": yaml_bomb(), ".travis.yml": yaml_bomb()},
    "an alias of itself": lambda: {".gitlab-ci.yml": b"a: &a [*a]\n"},
    "deep YAML": lambda: {".travis.yml": b"[" * 20_000},
    "deep TOML": lambda: {"pyproject.toml": b"a = " + b"[" * 20_000},
    "deep JSON": lambda: {"Pipfile.lock": b"[" * 200_000, ".devcontainer.json": b"[" * 200_000},
    "deep Python": lambda: {
        "setup.py": b"x = " + b"(" * 10_000,
        "noxfile.py": b"-" * 100_000 + b"1",
        "tests/test_deep.py": b"x = " + b"(" * 10_000,
        "tests/conftest.py": b"pytest_plugins = " + b"-" * 100_000 + b"1",
    },
    "many test files": many_tests,
    "growth in Python": growth_in_python,
    "lone surrogates": surrogates,
    "UTF-16": lambda: {"setup.cfg": "[metadata]\nname = demo\n".encode("utf-16")},
    "rings of includes": include_rings,
    "doubling groups": doubling_groups,
    "vast matrices": vast_matrices,
    "very long lines": lambda: dict.fromkeys(("README.md", "requirements.txt", "Makefile", "tox.ini"), b"a " * 900_000),
    "lines that patterns could choke on": awkward_lines,
    "huge manifests": lambda: {"setup.py": b"#" * (3 * 1024 * 1024), ".travis.yml": b"#\n" * 400_000},
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.timeout(60)
def test_hostile_content_ends_in_facts(tmp_path: Path, kind: str) -> None:
    write(tmp_path, HOSTILE[kind]())
    read_all(tmp_path)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    broken = {"pyproject.toml": b"[project\n", ".travis.yml": b"a: [\n", "setup.py": b"def (:\n", "tox.ini": b"\0\1"}
    write(tmp_path, broken)
    assert {warning.evidence.file for warning in inspect(tmp_path).warnings} == set(broken)


def test_names_that_are_not_unicode_are_left_out(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"test_\xff.py")).write_bytes(b"")
    (tmp_path / "test_good.py").write_bytes(b"import unittest")
    layout = inspect(tmp_path).tests[0]
    assert layout.paths == ("test_good.py",)


def test_a_vast_tree_is_cut_and_said_so(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"f{number}.py").write_text("")
    tree = Tree(tmp_path, max_files=10)
    assert len(tree.files) == 10
    assert "only its first 10 files" in tree.warnings[0].value


def test_reading_leaves_no_trace_in_the_tree(tmp_path: Path) -> None:
    write(tmp_path, {"setup.py": b"open('ran', 'w')\nsetup(name='x')", "noxfile.py": b"open('ran', 'w')"})
    inspect(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["noxfile.py", "setup.py"]
