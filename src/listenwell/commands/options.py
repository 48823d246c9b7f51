"""Check the arguments of a command against its function before the parser sees them, for clearer messages."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, get_args, get_type_hints

from listenwell.configuration import EXPECTED, OptionError, mistakes, one_of
from listenwell.labels.taxonomy import FEW, near_name


def check_options(function: Callable[..., None], words: Sequence[str]) -> None:
    """Raise OptionError for the first flag that the function does not have or whose value has the wrong type."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    hints = {
        parameter.name: parameter.annotation for parameter in parameters if parameter.default is not parameter.empty
    }
    required = [parameter.name for parameter in parameters if parameter.name not in hints]
    for position, word in enumerate(words):
        if word == "--":
            return
        if not word.startswith("--") or word == "--help":
            continue
        flag, equals, value = word.partition("=")
        if flag[2:] in required:
            raise OptionError(f"{flag[2:].upper()} is given without a flag: leave {flag} out")
        following = words[position + 1] if position + 1 < len(words) else None
        hint = _type_of(flag, hints)
        if hint is not bool and not flag.endswith(".help"):
            for mistake in _mistakes(flag, hint, value if equals else following):
                raise OptionError(mistake)


def _type_of(flag: str, hints: Mapping[str, Any]) -> Any:
    """The type of the value of a flag such as --limit or --decoding.method."""
    known, before, field_type = hints, "--", None
    for part in flag[2:].split("."):
        name = part.rstrip("+").replace("-", "_")
        if name == "help" and field_type is not None:
            return field_type
        if name not in known:
            raise OptionError(_unknown(flag, part, before, known))
        field_type, before = known[name], f"{before}{part}."
        cls = next((one for one in _members(field_type) if dataclasses.is_dataclass(one)), None)
        known = {} if cls is None else get_type_hints(cls)
    return field_type


def _members(hint: Any) -> list[Any]:
    """The types of an optional, or the type itself."""
    return [one for one in get_args(hint) if one is not NoneType] if NoneType in get_args(hint) else [hint]


def _unknown(flag: str, part: str, before: str, known: Mapping[str, Any]) -> str:
    if not known:
        return f"unknown option {flag!r}; {before.rstrip('.')} holds one value and has nothing below it"
    names = [before + (name if "." in before else name.replace("_", "-")) for name in known]
    near = near_name(before + part, names)
    hint = f"; did you mean {near!r}?" if near else ""
    listed = f" (known: {', '.join(names)})" if len(names) <= FEW else ""
    return f"unknown option {flag!r}{hint}{listed}"


def _mistakes(flag: str, hint: Any, value: str | None) -> Iterator[str]:
    """Messages about what is wrong with a flag's value."""
    plain = next((one for one in _members(hint)), hint)
    if value is None or value.startswith("--"):
        choices = "" if not (names := get_args(plain)) or plain is list else f": {one_of('', names)}"
        yield f"{flag} needs a value" + (f": {EXPECTED[plain]}" if plain in EXPECTED else choices)
    elif dataclasses.is_dataclass(plain):
        yield from _mistakes_in_record(flag, plain, value)
    elif value not in ("null", "None") and plain not in (list, list[str]):
        yield from mistakes(plain, value, flag)


def _mistakes_in_record(flag: str, cls: Any, value: str) -> Iterator[str]:
    """Check a whole record given at once: --decoding '{"method": "beam"}'."""
    import yaml

    try:
        record = yaml.safe_load(value)
    except yaml.YAMLError:
        record = value
    yield from mistakes(cls, record, flag)


def parser_message(message: str, function: Callable[..., None]) -> str:
    """Rephrase an error message of the parser."""
    if required := re.search(r"arguments are required: (.+)", message):
        return _missing(required[1].split(", ")[0], function)
    if extra := re.search(r"[Uu]nrecognized arguments: (.+)", message):
        return f"unexpected argument {extra[1]!r}"
    lines = [line.strip(" -") for line in message.splitlines() if line.strip()]
    telling = [line for line in lines if "Got value" in line or "not accepted" in line or "xpected" in line]
    return (telling or lines or ["cannot be read"])[0]


def _missing(name: str, function: Callable[..., None]) -> str:
    from docstring_parser import parse

    about = {entry.arg_name: entry.description or "" for entry in parse(function.__doc__ or "").params}
    summary = " ".join(about.get(name, "").split()).split(". ")[0].rstrip(".")
    return f"needs {name.upper()}" + (f": {summary[:1].lower()}{summary[1:]}" if summary else "")
