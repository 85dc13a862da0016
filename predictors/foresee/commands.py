"""The commands of shell lines, as far as foresight has to understand them: words, and options with their values."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SEPARATORS = frozenset({";", "&&", "||", "|", "&", "(", ")", ";;", "{", "}", "then", "do", "else", "fi", "done"})

_SHORT_VALUED = ("-b", "-c", "-C", "-e", "-f", "-i", "-o", "-p", "-r")
_LONG_VALUED = """
    --build-constraint --build-constraints --cache-dir --config-setting --config-settings --constraint --constraints
    --default-index --editable --exclude-newer --exclude-newer-package --extra --extra-index-url --find-links --group
    --index --index-url --link-mode --no-binary --no-binary-package --no-build-isolation-package --only-binary
    --output-file --prefix --python --requirement --requirements --resolution --target
"""
_VALUED = frozenset((*_SHORT_VALUED, *_LONG_VALUED.split()))
"""Options of pip and uv with a value, of those that recipes use."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The words behind a command's name."""

    words: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    """Each with its value, which is empty for a flag."""

    def values(self, *names: str) -> tuple[str, ...]:
        """What was given to options of these names, in order."""
        return tuple(value for name, value in self.options if name in names)


def commands(script: str) -> Iterator[tuple[str, ...]]:
    """The simple commands of shell lines. What cannot be parsed line by line, such as a here-document, is left out."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            tokens = list(lexer)
        except ValueError:
            continue
        yield from _parted(tokens)


def arguments(words: Sequence[str]) -> Arguments:
    """Options, each with the value that belongs to it, apart from the other words; nothing behind a redirection."""
    plain: list[str] = []
    options: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        if word.startswith((">", "<")):
            break
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            plain.append(word)
        elif equals:
            options.append((name, value))
        else:
            options.append((word, next(rest, "") if word in _VALUED else ""))
    return Arguments(tuple(plain), tuple(options))


def _parted(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    command: list[str] = []
    for token in (*tokens, ";"):
        if token not in _SEPARATORS:
            command.append(token)
        elif command:
            yield tuple(command)
            command = []
