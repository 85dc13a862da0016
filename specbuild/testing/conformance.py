"""The one suite that every sandbox backend has to pass, whatever it is made of.

A test module for a backend is a few lines (`tests/sandbox/test_conformance_overlay.py` is one):

    @pytest.mark.parametrize("check", CHECKS, ids=name_of)
    async def test_conformance(check: Check, store: Path, tiny: Path, tmp_path: Path) -> None:
        await check(Trial(lambda: MyBackend(store), rootfs=tiny, folder=tmp_path))

Each check opens its own sessions, so they may run in any order. They need pytest, and perl on the machine from which
`specbuild.testing.rootfs.tiny_rootfs` takes its programs.
"""

from __future__ import annotations

from specbuild.testing import checks_commands, checks_copying, checks_ends, checks_files, checks_isolation, checks_store
from specbuild.testing.trial import Check, Trial

__all__ = ["CHECKS", "Check", "Trial", "name_of"]

CHECKS: tuple[Check, ...] = (
    *checks_files.CHECKS,
    *checks_copying.CHECKS,
    *checks_commands.CHECKS,
    *checks_ends.CHECKS,
    *checks_isolation.CHECKS,
    *checks_store.CHECKS,
)


def name_of(check: Check) -> str:
    """What the check says, as the id of a test."""
    return getattr(check, "__name__", repr(check))
