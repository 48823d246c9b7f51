"""Power analysis before a study: how many items it needs, and what the planned number can detect."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import optimize, stats

from listenwell.studies.design import groups_of_systems
from listenwell.studies.spec import StudySpec


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of a power analysis."""

    tests: int
    """The number of comparisons that share the error rate; Holm's first step divides α by it."""
    needed: int
    """Items needed for the requested power."""
    power: float
    """Power with the planned items."""
    detectable: float
    """The smallest difference that the planned items detect with the requested power."""
    test: str
    unit: str = "percentage points"

    def shown(self, difference: float) -> str:
        """Format a difference."""
        if math.isinf(difference):
            return "no difference"
        if self.unit == "points":
            return f"a difference of {difference:.2f} points"
        return f"a difference of {100 * difference:.0f} {self.unit}"


def plan(spec: StudySpec) -> Plan:
    """Run the power analysis for the study's own test, at Holm's strictest level."""
    aim = spec.power
    tests = number_of_tests(spec)
    alpha = aim.alpha / tests
    if spec.kind == "ab":
        return Plan(
            tests,
            sign_items(aim.difference, aim.ties, aim.power, alpha),
            sign_power(spec.items, aim.difference, aim.ties, alpha),
            sign_difference(spec.items, aim.ties, aim.power, alpha),
            "sign test",
            "percentage points between wins and losses",
        )
    deviation = aim.deviation if spec.kind == "likert" else share_deviation(aim.deviation)
    return Plan(
        tests,
        paired_items(aim.difference / deviation, aim.power, alpha),
        paired_power(aim.difference / deviation, spec.items, alpha),
        paired_effect(spec.items, aim.power, alpha) * deviation,
        "paired t test",
        "points" if spec.kind == "likert" else "percentage points",
    )


def number_of_tests(spec: StudySpec) -> int:
    if spec.kind == "ab":
        return len(groups_of_systems(spec))
    systems = len(spec.systems)
    scales = len(spec.kind_of_study().scales) if spec.kind == "likert" else 1
    return max(1, systems * (systems - 1) // 2 * scales)


def share_deviation(deviation: float) -> float:
    """The standard deviation of a difference of two shares per item, capped at √0.5: the deviation given may be on a
    point scale, which makes no sense for shares."""
    return min(deviation, math.sqrt(0.5))


def paired_power(effect: float, items: int, alpha: float) -> float:
    """The power of a two-sided paired t-test; `effect` is the mean difference divided by the differences' standard
    deviation."""
    if items < 2:
        return 0.0
    freedom, shift = items - 1, effect * math.sqrt(items)
    critical = stats.t.ppf(1 - alpha / 2, freedom)
    lower = float(stats.nct.cdf(-critical, freedom, shift))
    # If the far tail is too small to compute, it counts as zero.
    return float(stats.nct.sf(critical, freedom, shift)) + (0.0 if math.isnan(lower) else lower)


def paired_items(effect: float, power: float, alpha: float) -> int:
    """The smallest number of items that gives the power."""
    low, high = 2, 4
    while paired_power(effect, high, alpha) < power:
        low, high = high, high * 2
        if high > 10**7:
            raise ValueError(f"an effect of {effect:g} standard deviations is too small to plan for")
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if paired_power(effect, middle, alpha) >= power else (middle + 1, high)
    return low


def paired_effect(items: int, power: float, alpha: float) -> float:
    """The smallest effect that this number of items detects."""
    if items < 2:
        return math.inf
    return float(optimize.brentq(lambda effect: paired_power(effect, items, alpha) - power, 1e-9, 1e3))


def sign_power(items: int, difference: float, ties: float, alpha: float) -> float:
    """The power of an exact two-sided sign test on the expected number of items without a tie."""
    decided = round(items * (1 - ties))
    if decided < 1:
        return 0.0
    chance = _chance(difference, ties)
    critical = _critical(decided, alpha)
    if critical is None:
        return 0.0
    upper = stats.binom.sf(decided - critical - 1, decided, chance)
    return float(upper + stats.binom.cdf(critical, decided, chance))


def sign_items(difference: float, ties: float, power: float, alpha: float) -> int:
    """The smallest number of items from which on the power is always reached. An exact test's power is a sawtooth in
    the number of items, so the first number that reaches it may not be enough."""
    items = 2
    while sign_power(items, difference, ties, alpha) < power:
        items = max(items + 1, int(items * 1.1))
        if items > 10**6:
            raise ValueError(f"a difference of {difference:g} is too small to plan for")
    while items > 2 and all(sign_power(items - back, difference, ties, alpha) >= power for back in range(1, 9)):
        items -= 1
    return items


def sign_difference(items: int, ties: float, power: float, alpha: float) -> float:
    most = 1 - ties
    if sign_power(items, most, ties, alpha) < power:
        return math.inf
    return float(optimize.brentq(lambda gap: sign_power(items, gap, ties, alpha) - power, 1e-9, most))


def _chance(difference: float, ties: float) -> float:
    """The probability that the first system wins, given that there is no tie."""
    return min(1.0, 0.5 + difference / (2 * (1 - ties)))


def _critical(decided: int, alpha: float) -> int | None:
    """The largest number of losses with which the wins are still significant; None if there is none."""
    critical = int(stats.binom.ppf(alpha / 2, decided, 0.5))
    while critical >= 0 and stats.binom.cdf(critical, decided, 0.5) > alpha / 2:
        critical -= 1
    return critical if critical >= 0 else None


def launch_note(spec: StudySpec) -> str:
    """The note on sample size that is shown before a study is launched."""
    found, aim = plan(spec), spec.power
    if len(spec.systems) < 2:
        return "Sample size: one system is rated, so nothing is compared and no difference can be missed."
    lines = [
        f"Sample size ({found.test}, {found.tests} comparison{'s' if found.tests > 1 else ''} with Holm's correction, "
        f"α = {aim.alpha:g}):",
        f"  {spec.items} items find {found.shown(found.detectable)} with {aim.power:.0%} power;",
        f"  {found.shown(aim.difference)} needs {found.needed} items, and is found with {found.power:.0%} power as "
        "planned.",
    ]
    if found.power < aim.power:
        lines.append(f"  That is too few to rely on finding it: --items {found.needed}.")
    return "\n".join(lines)
