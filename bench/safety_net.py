"""Check that a refactoring does not change the behavior of any shipped system.

    python bench/safety_net.py run BASE          # record BASE and the working tree in turn, then compare
    python bench/safety_net.py record --out FILE # record this version alone
    python bench/safety_net.py compare ONE OTHER # compare two recordings

`run` checks BASE out into a worktree with its own environment (or `--python`, an existing one), lets both versions
reply to the same 200 contexts of EmpatheticDialogues' test split, and compares the replies with their emotions, labels
and candidates, the likelihoods, the predictions of every classifier, and each decision of crisis care. Texts must be
equal; numbers must be equal to the last digit, or within `--tolerance` if a library or a kernel changed.

Run it by hand. It needs the corpora (LISTENWELL_DATA) and takes about ten minutes per version on one core; a quick
check takes one or two minutes: `--items 3 --talks 50 --systems trs,house`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

HOMES = {
    # Where each version has what is called: the current name first, then those of earlier versions.
    "load": ("listenwell:load",),
    "shipped": ("listenwell.weights:shipped", "listenwell.finding:shipped"),
    "read": ("listenwell.data.sources:read", "listenwell.sources:read"),
    "examples": ("listenwell.data.dialogue:examples", "listenwell.dialogue:examples"),
    "Labeller": ("listenwell.classifiers.labeller:Labeller", "listenwell.labelling:Labeller"),
    "Listener": ("listenwell.classifiers.listener:ListenerClassifier", "listenwell.house.listening:Listening"),
    "Empathy": ("listenwell.classifiers.empathy:EmpathyClassifier",),
    "Chooser": ("listenwell.classifiers.chooser:ReplyChooser",),
    "SafetyWrapper": ("listenwell.systems.safety.wrapper:SafetyWrapper", "listenwell.care.cared:Cared"),
}
TALKING = ("trs", "multi-trs", "mime", "moel", "meed2", "bert-joint", "house")
LABELLERS = {"emotion-intent": "emotion-intent", "sentiment": "polarity", "judge": "polarity"}
SAFETY_CASES = ("tests/systems/safety", "tests/care")


def find(name: str) -> Any:
    """The object of this name, wherever the installed version has it."""
    thing = find_if_any(name)
    if thing is None:
        raise SystemExit(f"this version has no {name}: looked at {', '.join(HOMES[name])}")
    return thing


def find_if_any(name: str) -> Any | None:
    """The same, or None if this version does not have it yet."""
    for home in HOMES[name]:
        module, attribute = home.split(":")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError):
            continue
    return None


def record(items: int, systems: Iterable[str], cases: Path, most_talks: int) -> dict[str, Any]:
    """Record the output of every shipped system and classifier, and the decisions of crisis care."""
    contexts = contexts_of_test(items)
    present = find("shipped")()
    print("care …", file=sys.stderr)
    recording: dict[str, Any] = {"systems": {}, "safety": safety_decisions(cases, most_talks)}
    for name in systems:
        if name in present:
            print(f"{name} …", file=sys.stderr)
            recording["systems"][name] = system_record(name, contexts)
    print("classifiers …", file=sys.stderr)
    return {**recording, "classifiers": dict(classifier_records(contexts, present))}


def classifier_records(items: list[Any], present: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The predictions of each classifier on the turns, the dialogues, or the human replies to them."""
    texts = [turn.text for item in items for turn in (*item.context, item.reply)]
    for name, labels in LABELLERS.items():
        yield name, find("Labeller").load(name, labels).log_probs(texts).tolist()
    heads = find("Listener").load("house-listener").log_probs([item.context for item in items])
    yield "house-listener", {name: values.tolist() for name, values in heads.items()}
    empathy, chooser = find_if_any("Empathy"), find_if_any("Chooser")
    if empathy is not None and "epitome" in present:
        pairs = [(item.context[-1].text, item.reply.text) for item in items]
        yield "epitome", empathy.load("epitome").log_probs(pairs).tolist()
    if chooser is not None and "house-chooser" in present:
        yield "house-chooser", chooser.load("house-chooser").fit([(i.context, i.reply.text) for i in items]).tolist()


def contexts_of_test(items: int) -> list[Any]:
    """`items` evenly spaced items of the test split."""
    dialogues = find("read")("empathetic-dialogues", None, "test")
    every = [item for dialogue in dialogues for item in find("examples")(dialogue)]
    return every[:: max(1, len(every) // items)][:items]


def system_record(name: str, items: list[Any]) -> dict[str, Any]:
    system = find("load")(name, False)
    replies = system.replies([[turn.text for turn in item.context] for item in items if len(item.context) % 2])
    likelihoods = system.likelihoods(items)
    return {
        "replies": [reply.to_json() for reply in replies],
        "one by one": [system.reply([turn.text for turn in items[0].context]).to_json()],
        "nll": likelihoods.nll.tolist(),
    }


class Silent:
    """A system that never replies, so that every reply is from care."""

    name = "silent"

    def reply(self, talk: Any, controls: Any = None, **options: Any) -> None:
        return None


def safety_decisions(cases: Path, most: int) -> list[Any]:
    """Care's replies to the written test cases and to contexts of the test split, in conversation."""
    wrapper = find("SafetyWrapper")(Silent())
    decisions = []
    every = list(talks(cases))
    for talk in every[:: max(1, len(every) // most)][:most] if most else every:
        reply = wrapper.care(talk) if hasattr(wrapper, "care") else wrapper.intervene(talk)
        decisions.append(None if reply is None else [*map(str, reply.reasons.values()), reply.text])
    return decisions


def talks(cases: Path) -> Iterator[list[str]]:
    folder = next(cases / place for place in SAFETY_CASES if (cases / place).is_dir())
    for file in sorted(folder.glob("held_out*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            yield [turn["text"] for turn in case["turns"]] if "turns" in case else [case["text"]]
    for item in contexts_of_test(1000):
        if len(item.context) % 2:
            yield [turn.text for turn in item.context]


def differences(one: Any, other: Any, tolerance: float, place: str = "") -> Iterator[str]:
    """Each place where two records differ. Fields that only the second has, such as a new field of a reply, do not
    count."""
    if isinstance(one, float) and isinstance(other, float | int):
        if abs(one - other) > tolerance * max(1.0, abs(one)):
            yield f"{place}: {one!r} against {other!r}"
    elif isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one, key=str):
            if key not in other:
                yield f"{place}/{key}: only in the first"
            else:
                yield from differences(one[key], other[key], tolerance, f"{place}/{key}")
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            yield f"{place}: {len(one)} against {len(other)} entries"
        for index, (left, right) in enumerate(zip(one, other, strict=False)):
            yield from differences(left, right, tolerance, f"{place}/{index}")
    elif one != other:
        yield f"{place}: {one!r} against {other!r}"


def additions(one: Any, other: Any) -> Iterator[str]:
    """The names of fields that only the second record has."""
    if isinstance(one, dict) and isinstance(other, dict):
        yield from (str(key) for key in other if key not in one)
        for key in one.keys() & other.keys():
            yield from additions(one[key], other[key])
    elif isinstance(one, list) and isinstance(other, list):
        for left, right in zip(one, other, strict=False):
            yield from additions(left, right)


def compare(one: Path, other: Path, tolerance: float) -> int:
    records = [json.loads(path.read_text(encoding="utf-8")) for path in (one, other)]
    lines = list(differences(*records, tolerance))
    for line in lines[:40]:
        print(line)
    if added := sorted({*additions(*records)}):
        print(f"only in the second, not compared: {', '.join(added)}")
    print(f"{len(lines)} differences" if lines else "equal")
    return 1 if lines else 0


def run(base: str, python: str | None, tolerance: float, options: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the worktree is removed on SIGTERM too
    with tempfile.TemporaryDirectory(prefix="safety-net-") as temporary:
        tree, files = Path(temporary, "base"), [Path(temporary, name) for name in ("base.json", "present.json")]
        subprocess.run(["git", "worktree", "add", "--detach", tree, base], cwd=ROOT, check=True)
        try:
            if python is None:
                subprocess.run(["make", "setup"], cwd=tree, check=True)
            interpreters = [python or str(tree / ".venv/bin/python"), sys.executable]
            for place, interpreter, file in zip((tree, ROOT), interpreters, files, strict=True):
                # Both runs use this version's cases, so that only the behavior differs.
                command = [interpreter, __file__, "record", "--out", file, "--cases", ROOT, *options]
                subprocess.run(command, env={**os.environ, "PYTHONPATH": str(place / "src")}, check=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
        return compare(*files, tolerance)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "record", "compare"))
    parser.add_argument("names", nargs="*", help="run: the commit to compare with; compare: two files")
    parser.add_argument("--out", type=Path, help="record: the file to write")
    parser.add_argument("--cases", type=Path, default=ROOT, help="record: the checkout whose written cases are used")
    parser.add_argument("--items", type=int, default=200, help="contexts of the test split that are answered")
    parser.add_argument("--talks", type=int, default=0, help="talks that crisis care decides on, spread; 0 for all")
    parser.add_argument("--systems", default=",".join(TALKING))
    parser.add_argument("--python", help="run: an interpreter that has what BASE needs")
    parser.add_argument("--tolerance", type=float, default=0.0)
    args = parser.parse_args()
    if args.action == "compare":
        return compare(*map(Path, args.names), args.tolerance)
    if args.action == "run":
        options = ["--items", str(args.items), "--systems", args.systems, "--talks", str(args.talks)]
        return run(args.names[0], args.python, args.tolerance, options)
    recording = record(args.items, args.systems.split(","), args.cases, args.talks)
    args.out.write_text(json.dumps(recording), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
