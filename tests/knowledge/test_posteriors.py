"""Posteriors against what is known of their distributions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbuild.knowledge.posteriors import Beta, LogNormal, Sample


def sample(*seconds: float) -> Sample:
    logs = [math.log(value) for value in seconds]
    return Sample(len(logs), sum(logs), sum(x * x for x in logs))


def test_without_outcomes_a_repair_is_as_likely_as_its_prior() -> None:
    assert Beta().mean == 0.5
    assert Beta.prior(0.8).mean == pytest.approx(0.8)


def test_outcomes_move_the_mean_as_the_formula_says() -> None:
    posterior = Beta(1, 1).given(3, 1)
    assert posterior.mean == pytest.approx(4 / 6)
    assert posterior.variance == pytest.approx(4 * 2 / (36 * 7))


@given(st.integers(0, 1000), st.integers(0, 1000), st.floats(0, 1))
def test_a_probability_stays_between_prior_and_frequency(worked: int, failed: int, probability: float) -> None:
    mean = Beta.prior(probability).given(worked, failed).mean
    seen = worked / (worked + failed) if worked + failed else probability
    assert min(seen, probability) - 1e-5 <= mean <= max(seen, probability) + 1e-5


def test_without_steps_the_median_is_the_prior_s() -> None:
    prior = LogNormal.prior(30)
    assert prior.given(Sample()) == prior
    assert prior.median == pytest.approx(30)


def test_many_steps_outweigh_the_prior() -> None:
    posterior = LogNormal.prior(1000).given(sample(*[4.0, 9.0] * 500))
    assert posterior.median == pytest.approx(6, rel=0.02)
    assert posterior.sigma == pytest.approx(math.log(1.5), rel=0.1)
    assert posterior.quantile(0.5) == pytest.approx(posterior.median)


def test_the_update_is_that_of_the_normal_gamma_model() -> None:
    posterior = LogNormal(0.0, 1.0, 2.0, 1.0).given(sample(math.e, math.e**3))
    assert (posterior.k, posterior.a) == (3.0, 3.0)
    assert posterior.m == pytest.approx(4 / 3)
    assert posterior.b == pytest.approx(1 + 2 / 2 + 1 * 2 * 4 / (2 * 3))


@given(st.lists(st.floats(0.01, 1e4), min_size=2, max_size=20), st.integers(1, 19))
def test_steps_may_come_one_by_one_or_all_at_once(seconds: list[float], cut: int) -> None:
    prior = LogNormal.prior(10)
    at_once = prior.given(sample(*seconds))
    parts = prior.given(sample(*seconds[:cut])).given(sample(*seconds[cut:]))
    assert parts.m == pytest.approx(at_once.m, abs=1e-6)
    assert parts.b == pytest.approx(at_once.b, rel=1e-6, abs=1e-6)
