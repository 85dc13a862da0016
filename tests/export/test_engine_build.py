"""What builders print when a step of a Dockerfile fails: their own words, as they came from real ones."""

from __future__ import annotations

import pytest

from specbuild.export.engine_build import StepFailed, plain, step_failed

CLASSIC = """\
Step 2/3 : RUN ["/bin/sh", "-eu", "-c", "echo one\\ntouch /x\\n"]
 ---> Running in a6aff61edd57
one
Removing intermediate container a6aff61edd57
 ---> 997d73fe558c
Step 3/3 : RUN ["/bin/sh", "-eu", "-c", "echo 'no such thing' >&2\\nexit 7\\necho 'not reached'\\n"]
 ---> Running in c28af715198b
no such thing
Removing intermediate container c28af715198b
The command '/bin/sh -eu -c echo 'no such thing' >&2
exit 7
echo 'not reached'
' returned a non-zero code: 7
"""

BUILDKIT_20 = """\
#5 [2/3] RUN ["/bin/sh", "-eu", "-c", "echo one\\ntouch /x\\n"]
#5 sha256:828c3fa837bf49ee9c83afac09fe3e8e13e184e3adfc76125182f2ef5d80b7a2
#5 0.169 one
#5 DONE 0.2s

#6 [3/3] RUN ["/bin/sh", "-eu", "-c", "echo 'no such thing' >&2\\nexit 7\\necho 'not reached'\\n"]
#6 sha256:23ad9c50a253a07421988b62c6866240800da17bdf3e0d6854b90152a4cbb14f
#6 0.518 no such thing
#6 ERROR: executor failed running [/bin/sh -eu -c echo 'no such thing' >&2
exit 7
echo 'not reached'
]: exit code: 7
------
 > [3/3] RUN ["/bin/sh", "-eu", "-c", "echo 'no such thing' >&2\\nexit 7\\necho 'not reached'\\n"]:
------
executor failed running [/bin/sh -eu -c echo 'no such thing' >&2
exit 7
echo 'not reached'
]: exit code: 7
"""

PODMAN = """\
STEP 2/3: RUN ["/bin/sh", "-eu", "-c", "echo one\\ntouch /x\\n"]
one
--> c1ae3469328
STEP 3/3: RUN ["/bin/sh", "-eu", "-c", "echo 'no such thing' >&2\\nexit 7\\necho 'not reached'\\n"]
no such thing
Error: building at STEP "RUN /bin/sh -eu -c echo 'no such thing' >&2
exit 7
echo 'not reached'
": while running runtime: exit status 7
"""


@pytest.mark.parametrize("output", [CLASSIC, BUILDKIT_20, PODMAN], ids=["docker", "buildkit", "podman"])
def test_a_step_that_failed_is_told_by_its_status_and_its_own_last_lines(output: str) -> None:
    failed = step_failed(output)
    assert failed is not None
    assert failed.status == 7
    assert failed.output.splitlines()[-1] == "no such thing"
    assert "exit 7\n" not in failed.output, "the script is not shown once more"


def test_what_podman_remarks_on_arguments_hides_nothing() -> None:
    remark = (
        'time="2026-01-02T03:04:05Z" level=warning msg="missing \\"UV_INDEX\\" build argument. Try adding \\"…\\""\n'
    )
    assert plain(f"\x1b[1m{remark}{remark}STEP 1/2: FROM x\nError: x\n") == "STEP 1/2: FROM x\nError: x\n"


def test_newer_buildkit_says_it_otherwise() -> None:
    said = 'ERROR: failed to solve: process "/bin/sh -eu -c false\n" did not complete successfully: exit code: 1\n'
    assert step_failed(f"#6 0.1 oh no\n#6 ERROR: process failed\n{said}") == StepFailed(1, "oh no")


@pytest.mark.parametrize(
    "output",
    [
        "Step 1/9 : FROM ${BASE}\npull access denied for no/such, repository does not exist\n",
        "Error response from daemon: write /var/lib/docker/tmp: no space left on device\n",
        'Error: creating build container: short-name "x" did not resolve to an alias\n',
        "",
    ],
)
def test_trouble_of_the_engine_is_no_steps(output: str) -> None:
    assert step_failed(output) is None
