"""What a handful of outcomes lets one expect: of a repair that it works, of a step how long it takes.

Both are conjugate updates, so that they cost nothing and a prior counts as so many earlier observations. Sources:
Gelman et al., Bayesian Data Analysis (3rd ed.), 2.4 for the Beta-binomial model; K. Murphy, "Conjugate Bayesian
analysis of the Gaussian distribution" (2007), section 3, for the normal-gamma model, applied to ln seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

SHORTEST = 1e-3
"""Seconds; what is measured shorter counts as this, as the logarithm of 0 is no number."""


@dataclass(frozen=True, slots=True)
class Beta:
    """Beta(a, b) over the probability of success. The default is Jeffreys' prior, Beta(1/2, 1/2)."""

    a: float = 0.5
    b: float = 0.5

    @classmethod
    def prior(cls, probability: float, weight: float = 2.0) -> Beta:
        """A belief of `probability` (between 0 and 1) that counts as `weight` (> 0) observations."""
        probability = min(max(probability, 1e-6), 1 - 1e-6)
        return cls(probability * weight, (1 - probability) * weight)

    def given(self, successes: int, failures: int) -> Beta:
        """The posterior Beta(a + successes, b + failures)."""
        return Beta(self.a + successes, self.b + failures)

    @property
    def mean(self) -> float:
        """a / (a + b): the probability that the next one succeeds."""
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> float:
        """ab / ((a + b)² (a + b + 1))."""
        total = self.a + self.b
        return self.a * self.b / (total * total * (total + 1))


@dataclass(frozen=True, slots=True)
class Sample:
    """What a sample of seconds comes to: enough for the posterior."""

    count: int = 0
    log_sum: float = 0.0
    log_squares: float = 0.0
    """Sum of the squares of the logarithms."""


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Normal-gamma(m, k, a, b) over mean and precision of ln seconds.

    m: expected mean; k: observations that this is worth; a, b: shape and rate of the precision's gamma distribution.
    """

    m: float
    k: float
    a: float
    b: float

    @classmethod
    def prior(cls, median: float, spread: float = 3.0, weight: float = 1.0) -> LogNormal:
        """A belief that half of the steps end within `median` seconds and two thirds within a factor of `spread` (> 1).

        `weight` (> 0) is how many observations it counts as. a = 2 is the least integer for which the variance exists.
        """
        return cls(math.log(max(median, SHORTEST)), weight, 2.0, math.log(spread) ** 2)

    def given(self, sample: Sample) -> LogNormal:
        """The posterior (Murphy, 3.3): k' = k + n, m' = (km + nx̄)/k', a' = a + n/2,
        b' = b + ½ Σ(x - x̄)² + kn(x̄ - m)² / 2k'."""
        n = sample.count
        if not n:
            return self
        mean = sample.log_sum / n
        k = self.k + n
        scatter = max(0.0, sample.log_squares - n * mean * mean)
        b = self.b + scatter / 2 + self.k * n * (mean - self.m) ** 2 / (2 * k)
        return LogNormal((self.k * self.m + n * mean) / k, k, self.a + n / 2, b)

    @property
    def sigma(self) -> float:
        """Standard deviation of ln seconds of the next step: that of the predictive Student t with 2a degrees of
        freedom and squared scale b(k + 1)/ak (Murphy, 3.6), whose variance is b(k + 1)/k(a - 1)."""
        return math.sqrt(self.b * (self.k + 1) / (self.k * (self.a - 1)))

    @property
    def median(self) -> float:
        """Seconds: exp(m)."""
        return math.exp(self.m)

    def quantile(self, share: float) -> float:
        """Seconds within which `share` (between 0 and 1) of such steps end.

        Of the log-normal with the predictive's median and variance, as the t itself has no finite mean of seconds.
        """
        return math.exp(self.m + self.sigma * NormalDist().inv_cdf(share))
