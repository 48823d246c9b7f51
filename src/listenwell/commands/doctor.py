from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from listenwell.diagnosis import Finding


def doctor(json: bool = False, imports: bool = False) -> None:
    """Say what is installed, which classifiers are active, where folders lie, and how to mend what is missing.

    The exit code is 1 if something is missing that weakens Care, which answers signs of a crisis; else 0. Nothing is
    changed and nothing is downloaded.

    Args:
        json: Print JSON instead of text.
        imports: Also import every package, to find those that are broken, and ask torch for its threads. Takes seconds.
    """
    import json as encoder
    from dataclasses import asdict

    from listenwell.diagnosis import about, diagnose

    found = diagnose(imports)
    weaker = [one for one in found if one.weakens_care and one.state != "ok"]
    if json:
        report = {"about": about(), "care_is_whole": not weaker, "findings": [asdict(one) for one in found]}
        print(encoder.dumps(report, ensure_ascii=False, indent=1))
    else:
        _show(about(), found, weaker)
    if weaker:
        raise SystemExit(1)


def _show(versions: dict[str, str], found: list[Finding], weaker: list[Finding]) -> None:
    """In plain lines: whoever needs this may have a broken library for tables, too."""
    print("\n".join(f"{name}: {value}" for name, value in versions.items()))
    width = max(len(one.name) for one in found)
    for section in dict.fromkeys(one.section for one in found):
        print(f"\n{section}")
        for one in found:
            if one.section == section:
                print(f"  {one.state:<8} {one.name:<{width}}  {one.detail}")
    remedies = dict.fromkeys(one.remedy for one in found if one.remedy and one.state not in ("ok", "note"))
    if remedies:
        print("\nto mend what is missing")
        print("\n".join(f"  {remedy}" for remedy in remedies))
    print("\ncare is whole" if not weaker else f"\ncare is weaker: {'; '.join(one.name for one in weaker)}")
