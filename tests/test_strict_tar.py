"""Archives of others are read as what they are, or refused by `tarfile.TarError`; never cut short, never for ever."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbuild.strict_tar import LARGEST_HEADER, StrictTarInfo, exact_time
from specbuild.testing.images import extended, file, folder, layer, link

END = bytes(2 * tarfile.BLOCKSIZE)
FIRST = layer(file("first", "x"))[: 2 * tarfile.BLOCKSIZE]
RUBBISH = {
    "a checksum that is wrong": b"\1" * tarfile.BLOCKSIZE,
    "a negative size": extended("x", {"size": "-5"}),
    "a size that leads back to where it stands": extended("x", {"size": "-1536"}),
    "a size that is too large": extended("x", {"size": str(2**70)}),
    "holes that make no sense": extended("x", {"GNU.sparse.map": "a,b", "GNU.sparse.size": "5"}),
    "older holes that make no sense": extended("x", {"GNU.sparse.size": "zz"}),
    "a map of holes that makes no sense": extended(
        "x", {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "5"}, b"xx\nyy\n"
    ),
    "a time that is no number": extended("x", {"mtime": "nan"}),
    "a time without end": extended("x", {"mtime": "-inf"}),
    "a name with a zero": extended("x", {"path": "a\0b"}),
    "a target with a zero": extended("x", {"linkpath": "a\0b"}),
    "a header of great size": extended("x", {"comment": "c" * LARGEST_HEADER}),
    "headers of headers": b"".join(extended("x", {"a": "b"})[: 2 * tarfile.BLOCKSIZE] for _ in range(2000)),
}


def names(archive: bytes, mode: str) -> list[str]:
    source = io.BytesIO(archive)
    with (
        tarfile.open(fileobj=source, mode="r:", tarinfo=StrictTarInfo)
        if mode == "r:"
        else tarfile.open(fileobj=source, mode="r|", tarinfo=StrictTarInfo)
    ) as tar:
        return [member.name for member in tar]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("mode", ["r:", "r|"])
@pytest.mark.parametrize("rubbish", RUBBISH.values(), ids=RUBBISH.keys())
def test_rubbish_is_refused_wherever_it_stands(rubbish: bytes, mode: str) -> None:
    with pytest.raises(tarfile.TarError):
        names(rubbish + END, mode)
    with pytest.raises(tarfile.TarError):
        names(FIRST + rubbish + END, mode)


@pytest.mark.parametrize("mode", ["r:", "r|"])
def test_a_header_that_is_cut_is_no_end(mode: str) -> None:
    with pytest.raises(tarfile.TarError):
        names(FIRST + layer(file("second"))[:300], mode)


@pytest.mark.parametrize("mode", ["r:", "r|"])
def test_what_makes_sense_is_read_as_ever(mode: str) -> None:
    archive = layer(folder("d"), file("d/" + "n" * 300, "x", mtime=1.5), file("é" * 200), link("l", "d"))
    assert names(archive, mode) == ["d", "d/" + "n" * 300, "é" * 200, "l"]
    assert names(archive[: -len(END)].rstrip(b"\0") + bytes(512 * 4), mode) == names(archive, mode)


@pytest.mark.parametrize(
    ("told", "exact"),
    [("1.123456789", "1.123456789"), ("-5", "-5"), ("1e-05", None), ("xyz", None), ("", None), ("1" * 30, None)],
)
def test_times_are_exact_where_they_are_plain(told: str, exact: str | None) -> None:
    info = tarfile.TarInfo("x")
    info.pax_headers = {"mtime": told}
    assert exact_time(info) == exact


@given(st.binary(max_size=512), st.integers(0, 1023))
def test_no_bytes_whatever_are_another_kind_of_trouble(noise: bytes, at: int) -> None:
    whole = extended("x", {"size": "3", "mtime": "1.5"}, b"abc")
    with_noise = bytearray(FIRST + whole + END)
    with_noise[at : at + len(noise)] = noise
    for mode in ("r:", "r|"):
        try:
            names(bytes(with_noise), mode)
        except tarfile.TarError:
            continue
