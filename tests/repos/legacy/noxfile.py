import nox

DEPS = ["pytest", "mock"]


def _install(session):
    session.install("-r", "requirements/lock.txt", *DEPS)


@nox.session(python=["3.6"], name="unit")
def tests(session):
    _install(session)
    session.install("-e", ".[dev]", env={"SPEED": "1"})
    session.run("pytest", "-q", *session.posargs)


def helper():
    pass
