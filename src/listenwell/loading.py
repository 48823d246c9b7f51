"""Loading conversational systems by name or path."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args, overload

from listenwell.labels.taxonomy import unknown_name
from listenwell.weights import REMOTE, find, in_language, is_remote, languages, shipped

if TYPE_CHECKING:
    from listenwell.checkpoint import Checkpoint
    from listenwell.systems.bot import Bot
    from listenwell.systems.house.system import House
    from listenwell.systems.remote.endpoint import Endpoint
    from listenwell.systems.safety import SafetyWrapper

HOUSE = "house"
"""The house system's name."""

FALLBACK = "multi-trs"
"""The default system where the house system cannot run."""

Mode = Literal["rerank", "stream"]
"""rerank: as the system is configured, possibly the best of several candidates; stream: one candidate, word by word."""


def talking() -> dict[str, str]:
    """The available systems that reply, each with a one-line description; the others are classifiers."""
    return {name: about for name, place in shipped().items() if (about := _what_replies(place)) is not None}


def _what_replies(place: Path) -> str | None:
    """A description of the system in this folder, or None if it does not reply. Unreadable ones fail when loaded."""
    from listenwell.models import current_model, entry, model_class

    try:
        model = current_model(json.loads((place / "config.json").read_text(encoding="utf-8"))["model"])["name"]
        known, talks = entry(model), model_class(model).talks
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "unknown"
    if not talks:
        return None
    return "listens, plans, writes several replies and says the best" if model == "house-writer" else known.about


def default_system(language: str | None = None) -> str:
    """The system to use if none is named: the house system, if it is available and can run.

    For a language that it does not speak, the first available system that speaks it.
    """
    usual = FALLBACK if missing_for_house() else HOUSE
    if language is None or language in languages(find(usual)):
        return usual
    others = [name for name in talking() if language in languages(find(name))]
    return others[0] if others else str(in_language(usual, language))


def missing_for_house() -> list[str]:
    """What the house system lacks here: its weights ("house"), libraries, pretrained models; empty if it can run."""
    from listenwell.backbones.locate import at_hand

    missing = _missing_listener()
    missing += [library for library in ("transformers", "peft") if find_spec(library) is None]
    return missing + ([] if at_hand("smollm2") else ["smollm2"])


def _missing_listener() -> list[str]:
    """What the house system's classifiers lack, which are also used with an endpoint."""
    from listenwell.backbones.locate import at_hand

    missing = [] if HOUSE in shipped() else [HOUSE]
    return missing + ([] if at_hand("minilm") else ["minilm"])


@overload
def load(
    name_or_path: str | Path | None = None,
    care: Literal[True] = True,
    *,
    base_url: str | None = None,
    mode: Mode = "rerank",
    language: str | None = None,
) -> SafetyWrapper: ...


@overload
def load(
    name_or_path: str | Path | None = None,
    *,
    care: Literal[False],
    base_url: str | None = None,
    mode: Mode = "rerank",
    language: str | None = None,
) -> Bot | Endpoint | House: ...


@overload
def load(
    name_or_path: str | Path | None,
    care: Literal[False],
    *,
    base_url: str | None = None,
    mode: Mode = "rerank",
    language: str | None = None,
) -> Bot | Endpoint | House: ...


def load(
    name_or_path: str | Path | None = None,
    care: bool = True,
    *,
    base_url: str | None = None,
    mode: Mode = "rerank",
    language: str | None = None,
) -> SafetyWrapper | Bot | Endpoint | House:
    """Load a system that is ready to talk: a trained one, or openai:NAME.

    With `care`, it is wrapped in crisis care, as people should use it; without, it is bare, for evaluation.
    Without a name, it is the system that `listenwell chat` uses (`default_system`). `language`, such as "zh", selects
    the variant that speaks it: `load("strategy-memory", language="zh")` loads strategy-memory-zh.
    `base_url` is the URL of the server for openai:NAME; the default is LISTENWELL_BASE_URL. In `mode` "stream", a reply
    is a single candidate, so it is faster, and `stream()` yields it as it grows; "rerank" is what is evaluated.
    """
    from listenwell.systems.safety import SafetyWrapper

    if mode not in get_args(Mode):
        raise ValueError(unknown_name("mode", mode, get_args(Mode)))
    name_or_path = default_system(language) if name_or_path is None else in_language(name_or_path, language)
    system: Bot | Endpoint | House
    if is_remote(name_or_path):
        system = _remote(str(name_or_path), base_url)
    elif base_url is not None:
        raise ValueError(f"--base-url is where the model {REMOTE}NAME is; {name_or_path} is not such a name")
    else:
        system = _trained(name_or_path)
    if mode == "stream":
        system.decoding = system.decoding.streamed()
    return SafetyWrapper(system) if care else system


def _trained(name_or_path: str | Path) -> Bot | House:
    from listenwell import checkpoint

    ckpt = checkpoint.load(find(name_or_path))
    if not ckpt.model.talks:
        raise ValueError(f"{name_or_path}: {ckpt.name} reads and does not talk; listenwell evaluate measures it")
    return talking_system(ckpt)


def talking_system(ckpt: Checkpoint) -> Bot | House:
    """The system for a checkpoint whose model talks: a bot or, with the house system's parts, the house system."""
    from listenwell.classifiers.label_cache import HOUSE_PARTS
    from listenwell.systems.bot import Bot

    if set(HOUSE_PARTS) <= set(ckpt.parts):
        from listenwell.systems.house.system import House

        return House.of(ckpt)
    return Bot(ckpt)


def _remote(name: str, base_url: str | None) -> Endpoint | House:
    """An endpoint; if the house system's classifiers are available, it becomes the writer of the house system."""
    from listenwell.systems.remote.endpoint import endpoint

    if _missing_listener():
        return endpoint(name, base_url)
    from listenwell.checkpoint import load_decoding, load_parts
    from listenwell.systems.house.endpoint_writer import EndpointWriter
    from listenwell.systems.house.options import HouseDecoding
    from listenwell.systems.house.system import House

    place = shipped()[HOUSE]
    own = HouseDecoding.extend(load_decoding(place))
    writer = EndpointWriter(endpoint(name, base_url))
    writer.decoding = replace(writer.decoding, candidates=own.candidates, rerank=own.rerank, lean=own.lean)
    return House(load_parts(place), writer)
