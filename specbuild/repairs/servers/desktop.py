"""What desktop programs expect to be there: a display and a message bus."""

from __future__ import annotations

from specbuild.repairs.servers.contract import Server, Setup
from specbuild.repairs.servers.shell import background, lines, until

_NUMBER = 99
_SOCKET = f"/tmp/.X11-unix/X{_NUMBER}"  # noqa: S108 - in the sandbox
_BUS = "/run/specbuild-bus"


def _display(setup: Setup) -> str:
    del setup
    return lines(
        "install -d -m 1777 /tmp/.X11-unix",
        background("display", f"exec Xvfb :{_NUMBER} -screen 0 1280x1024x24 -nolisten tcp"),
        until("display", f"test -S {_SOCKET}"),
    )


def _bus(setup: Setup) -> str:
    """A bus of the session and that of the system: tests seldom say which of them they miss."""
    del setup
    return lines(
        "install -d -m 755 /run/dbus",
        "dbus-uuidgen --ensure=/etc/machine-id",
        "rm -f /run/dbus/pid",
        "dbus-daemon --system --nopidfile --fork",
        background("dbus", f"exec dbus-daemon --session --nopidfile --nofork --address=unix:path={_BUS}"),
        until("dbus", f"test -S {_BUS}"),
    )


DISPLAY = Server(
    name="display",
    title="a virtual X display",
    packages=("xvfb",),
    script=_display,
    variables=(("DISPLAY", f":{_NUMBER}"),),
    images=("xvfb",),
    probability=0.85,
)

DBUS = Server(
    name="dbus",
    title="D-Bus",
    packages=("dbus",),
    script=_bus,
    variables=(("DBUS_SESSION_BUS_ADDRESS", f"unix:path={_BUS}"),),
    images=("dbus",),
    probability=0.75,
)
