from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from listenwell.diagnosis import Finding


def doctor(json: bool = False, imports: bool = False) -> None:
    """Show what is installed, which classifiers are active, where the folders are, and how to fix what is missing.

    The exit code is 1 if something is missing that weakens the response to signs of a crisis, else 0. Nothing is
    changed or downloaded.

    Args:
        json: Print JSON instead of text.
        imports: Also import every package, to find broken ones, and ask torch for its threads. Takes a few seconds.
    """
    import json as encoder
    from dataclasses import asdict

    from listenwell.diagnosis import about, diagnose

    findings = diagnose(imports)
    weaker = [one for one in findings if one.weakens_safety and one.state != "ok"]
    if json:
        complete = {"safety_is_complete": not weaker, "care_is_whole": not weaker}  # the second is its old name
        report = {"about": about(), **complete, "findings": [asdict(one) for one in findings]}
        print(encoder.dumps(report, ensure_ascii=False, indent=1))
    else:
        _show(about(), findings, weaker)
    if weaker:
        raise SystemExit(1)


def _show(versions: dict[str, str], findings: list[Finding], weaker: list[Finding]) -> None:
    """Print plain lines, because the library for tables may be broken too."""
    print("\n".join(f"{name}: {value}" for name, value in versions.items()))
    width = max(len(one.name) for one in findings)
    for section in dict.fromkeys(one.section for one in findings):
        print(f"\n{section}")
        for one in findings:
            if one.section == section:
                print(f"  {one.state:<8} {one.name:<{width}}  {one.detail}")
    remedies = dict.fromkeys(one.remedy for one in findings if one.remedy and one.state not in ("ok", "note"))
    if remedies:
        print("\nto fix what is missing")
        print("\n".join(f"  {remedy}" for remedy in remedies))
    print(
        "\ncrisis safety is complete"
        if not weaker
        else f"\ncrisis safety is weaker: {'; '.join(one.name for one in weaker)}"
    )
