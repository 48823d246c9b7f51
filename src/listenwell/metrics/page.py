"""docs/metrics.md, from the registry: python -m listenwell.metrics.page > docs/metrics.md"""

from __future__ import annotations

from listenwell.metrics.material import NEEDS
from listenwell.metrics.registry import DEFAULT, DEFAULT_IN, Metric, known, languages

HEAD = """# Metrics

Made by `python -m listenwell.metrics.page`; a test checks that it is up to date.

`evaluate(…)` computes the default set. `metrics=["bleu-1", "nist-4"]` selects metrics by name, and `metrics="all"`
selects all of them. A metric that cannot be computed is left out, never reported as zero, and `about["left out"]` says
why. New metrics are not added to the default set, so that earlier tables stay comparable with new ones. Your own
package can add metrics through an entry point in the group `listenwell.metrics`. It names a module that registers them
(`listenwell.metrics.metric`).

In Chinese, BLEU and NIST use sacrebleu's `zh` tokenizer; Distinct, entropy and length count characters.
"""


def page() -> str:
    lines = [HEAD, "| name | what it is | needs | languages | better | default |", "|---|---|---|---|---|---|"]
    lines += [_row(one) for one in known().values() if one.compute.__module__.startswith("listenwell.")]
    lines += ["", "What a metric may need:", "", *(f"- {need}: {what}" for need, what in NEEDS.items())]
    return "\n".join(lines) + "\n"


def _row(one: Metric) -> str:
    needs = ", ".join((*one.needs, *one.packages)) or "replies"
    default = (
        "yes" if one.name in DEFAULT else next((languages([k]) for k, v in DEFAULT_IN.items() if one.name in v), "")
    )
    return f"| {one.name} | {one.about} | {needs} | {languages(one.languages) or 'any'} | {one.better} | {default} |"


if __name__ == "__main__":
    print(page(), end="")
