"""How long a model thinks, and what waits for it."""

from __future__ import annotations

import random
from statistics import median

import anyio
import pytest

from bench.simulate import main
from bench.thinking import Latency, Thinker
from specbuild.testing.clock import VirtualLoop


def drawn(text: str) -> list[float]:
    latency, numbers = Latency.parse(text), random.Random(1)  # noqa: S311 - reproducible, not secret
    return [latency.draw(numbers) for _ in range(2000)]


def test_distributions_have_their_shapes() -> None:
    assert set(drawn("10")) == {10.0}
    assert min(drawn("uniform:5,20")) == pytest.approx(5, abs=0.2)
    assert max(drawn("uniform:5,20")) == pytest.approx(20, abs=0.2)
    assert median(drawn("lognormal:10,0.5")) == pytest.approx(10, rel=0.05)
    assert sorted(drawn("lognormal:10,0.5"))[1954] == pytest.approx(10 * 2.718 ** (2 * 0.5), rel=0.1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fast",
        "-1",
        "nan",
        "inf",
        "1,2",
        "uniform:5",
        "uniform:20,5",
        "normal:1,2",
        "lognormal:0,1",
        "lognormal:10",
        "lognormal:10,-1",
        "uniform:a,b",
        ":10",
    ],
)
def test_what_is_no_distribution_is_refused_with_examples(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="lognormal:10,0"):
        Latency.parse(text)
    with pytest.raises(SystemExit, match="2"):
        main([f"--thinking={text}"])
    assert "uniform:5,20" in capsys.readouterr().err


def test_a_question_is_thought_about_once_and_several_at_a_time() -> None:
    async def main() -> list[float]:
        thinker, ended = Thinker(Latency.parse("10"), "seed"), list[float]()

        async def ask(question: str, at: float) -> None:
            await anyio.sleep(at)
            await thinker.about(question)
            ended.append(anyio.current_time())

        async with anyio.create_task_group() as tasks:
            for question, at in (("one", 0), ("one", 4), ("two", 3), ("one", 20)):
                tasks.start_soon(ask, question, at)
        return ended

    assert anyio.run(main, backend_options={"loop_factory": VirtualLoop}) == [10.0, 10.0, 13.0, 20.0]


def test_the_same_question_takes_as_long_in_every_race() -> None:
    first, again = (Thinker(Latency.parse("lognormal:10,0.5"), "seed") for _ in range(2))
    assert first.latency_of("one") == again.latency_of("one") != first.latency_of("two")
