"""The command line: a dict of functions. Nothing heavy is imported before a command is chosen."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NoReturn

from listenwell.layers.cpu import keep_freed_memory, keep_made_kernels
from listenwell.notices import plain_warnings

COMMANDS: dict[str, tuple[str, str]] = {
    "chat": ("listenwell.commands.chat:chat", "talk with a system in the terminal"),
    "serve": ("listenwell.commands.serve:serve", "serve a page and an OpenAI-compatible API"),
    "train": ("listenwell.commands.train:train", "train a system from a recipe, or resume a run"),
    "generate": ("listenwell.commands.generate:generate", "write a system's replies to a corpus or a file of texts"),
    "evaluate": ("listenwell.commands.evaluate:evaluate", "score a system on a corpus"),
    "calibrate": ("listenwell.commands.calibrate:calibrate", "fit a classifier's confidence, or how meed2 chooses"),
    "control": ("listenwell.commands.control:control", "measure whether a system follows the requested intent"),
    "variety": ("listenwell.commands.variety:variety", "measure how varied the replies to one message are"),
    "consensus": ("listenwell.commands.consensus:consensus", "measure whether a discrete latent is used"),
    "memory": ("listenwell.commands.memory:memory", "show what a strategy memory holds"),
    "rerank": ("listenwell.commands.rerank:rerank", "measure what each re-ranking term contributes"),
    "compare": ("listenwell.commands.compare:compare", "compare evaluated systems, also with published numbers"),
    "study": ("listenwell.commands.study:study", "let people rate replies: make, serve and report a study"),
    "reproduce": ("listenwell.commands.reproduce:reproduce", "reproduce a paper's tables beside the published numbers"),
    "embeddings": ("listenwell.commands.embeddings:embeddings", "draw the emotion embeddings of trained systems"),
    "data": ("listenwell.commands.data:data", "list the corpora; describe, convert, check or label one"),
    "curate": ("listenwell.commands.curate:curate", "make a corpus of dialogues out of subtitles or posts"),
    "doctor": ("listenwell.commands.doctor:doctor", "show what is installed, what is missing and how to fix it"),
    "models": ("listenwell.commands.models:models", "list the systems, their papers and recipes"),
}

HELP = """\
listenwell: empathetic dialogue systems that talk, train, are measured and compared.

usage: listenwell COMMAND [OPTIONS]        listenwell COMMAND --help

{commands}

  listenwell chat                          talk with the default system
  listenwell train tiny                    a first system, in a minute, on the shipped corpus
  listenwell train multi-trs               the multi-task transformer on EmpatheticDialogues
  listenwell evaluate runs/multi-trs       its scores on the test split
  echo "I got the job!" | listenwell chat  one reply per line

Corpora are looked for in the folder that LISTENWELL_DATA names, by default ~/.local/share/listenwell.
"""


def help_text() -> str:
    return HELP.format(commands="\n".join(f"  {name:<10} {about}" for name, (_, about) in COMMANDS.items()))


def main(arguments: list[str] | None = None) -> None:
    from listenwell.commands.terminal import make_streams_robust

    words = list(sys.argv[1:] if arguments is None else arguments)
    make_streams_robust()
    if words[:1] == ["help"] and len(words) > 1:
        words = [words[1], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        print(help_text(), end="")
        return
    if words[0] in ("-V", "--version"):
        from listenwell import __version__

        print(f"listenwell {__version__}")
        return
    name = words[0].replace("_", "-")
    if name not in COMMANDS:
        _give_up(f"listenwell: {_no_command(words[0])}", code=2)
    _run(name, words[1:])


def _no_command(word: str) -> str:
    from listenwell.labels.taxonomy import unknown_name

    if word.startswith("-"):
        return f"a command comes first, before {word!r}: {', '.join(COMMANDS)} (listenwell --help)"
    return f"{unknown_name('command', word, COMMANDS)} (listenwell --help)"


def _run(name: str, words: list[str]) -> None:
    """Run a command. Errors are printed as one line; the exit code is 2 if the command was mistyped."""
    from listenwell.commands.errors import describe

    try:
        with plain_warnings():
            _call(name, words)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        # The reader of our output has closed the pipe; an error message would fail the same way.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except (ValueError, OSError, RuntimeError, ImportError) as problem:
        from listenwell.configuration import OptionError

        if os.environ.get("LISTENWELL_DEBUG"):
            raise
        _give_up(f"listenwell {name}: {describe(problem)}", code=2 if isinstance(problem, OptionError) else 1)


def _give_up(message: str, code: int) -> NoReturn:
    if code == 1:
        raise SystemExit(message)
    print(message, file=sys.stderr)
    raise SystemExit(code)


def _call(name: str, words: list[str]) -> None:
    if name == "doctor" and not _can_parse():
        from listenwell.commands.doctor import doctor

        return doctor(json="--json" in words, imports="--imports" in words)
    from jsonargparse import ArgumentError, ArgumentParser, set_parsing_settings

    from listenwell.commands.options import check_options, parser_message
    from listenwell.configuration import OptionError

    keep_freed_memory()
    keep_made_kernels()
    module, function_name = COMMANDS[name][0].split(":")
    function = getattr(import_module(module), function_name)
    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    parser = ArgumentParser(
        prog=f"listenwell {name}",
        description=_description(function.__doc__),
        formatter_class=_formatter(function),
        exit_on_error=False,
    )
    parser.add_function_arguments(function, as_positional=True, skip={*_add_lists(parser, function)})
    named = _named(function, words)
    plain = list(_plain(function, named))
    try:
        if not {"-h", "--help"} & {*named}:
            check_options(function, named)
        parsed = parser.parse_args(plain)
        changes = _changes(function, parser.parse_args(plain, defaults=False))
    except (OptionError, ArgumentError) as problem:
        message = str(problem) if isinstance(problem, OptionError) else parser_message(str(problem), function)
        raise OptionError(f"{message} (listenwell {name} --help)") from problem
    for parameter in changes:
        parsed[parameter] = None
    chosen = parser.instantiate(parsed)
    # By name, since the parser marks names that clash with its own methods, such as items.
    function(**{parameter: chosen[parameter] for parameter in inspect.signature(function).parameters} | changes)


def _can_parse() -> bool:
    """Whether the library that parses command lines works; the doctor must work even without it."""
    try:
        import jsonargparse  # noqa: F401
    except Exception:
        return False
    return True


def _changes(function: Callable[..., None], given: Any) -> dict[str, Any]:
    """Only the decoding options that were typed, so that the system decides the rest."""
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.annotation == "HouseDecoding | None" and given.get(p.name) is not None]
    if not names:
        return {}  # and torch is not imported for nothing
    from listenwell.decoding import Changes

    return {name: Changes(given[name].as_dict()) for name in names}


def _formatter(function: Callable[..., None]) -> type:
    """A help formatter that keeps paragraphs apart and shows the function's flags as they are typed."""
    import re
    from textwrap import fill

    from jsonargparse import DefaultHelpFormatter

    own = re.compile(rf"--({'|'.join(inspect.signature(function).parameters)})(?![\w.])")

    class Formatter(DefaultHelpFormatter):
        def _fill_text(self, text: str, width: int, indent: str) -> str:
            parts = text.split("\n\n")
            return "\n\n".join(fill(part, width, initial_indent=indent, subsequent_indent=indent) for part in parts)

        def format_help(self) -> str:
            return own.sub(lambda flag: flag[0].replace("_", "-"), super().format_help())

    return Formatter


def _add_lists(parser: Any, function: Callable[..., None]) -> set[str]:
    """A required list of strings takes any number of words; jsonargparse itself would expect one JSON list."""
    from docstring_parser import parse

    parameters = inspect.signature(function, eval_str=True).parameters.values()
    names = {p.name for p in parameters if p.annotation == list[str] and p.default is p.empty}
    descriptions = {entry.arg_name: entry.description for entry in parse(function.__doc__ or "").params}
    for name in names:
        parser.add_argument(name, nargs="+", type=str, help=descriptions.get(name))
    return names


def _named(function: Callable[..., None], words: list[str]) -> list[str]:
    """Extra words before the first flag are assigned to the next parameters: `listenwell data shipped`."""
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())
    required = [p for p in parameters if p.default is p.empty]
    if any(p.annotation == list[str] for p in required):
        return words
    bare = next((i for i, word in enumerate(words) if word.startswith("-") and word != "-"), len(words))
    optional = [p.name for p in parameters if p.default is not p.empty and p.annotation is not bool]
    extra = [f"--{name}={word}" for name, word in zip(optional, words[len(required) : bare], strict=False)]
    done = len(required) + len(extra)
    return [*words[: len(required)], *extra, *words[done:]] if extra else words


def _plain(function: Callable[..., None], words: list[str]) -> Iterator[str]:
    """Accept flags as people type them: --save-every, a bare --resume, --set several times."""
    parameters = inspect.signature(function, eval_str=True).parameters
    for position, word in enumerate(words):
        flag, equals, value = word.partition("=")
        name = flag[2:].replace("-", "_")
        if flag.startswith("--") and name.split(".")[0] in parameters and "." in name:
            yield f"--{name}{equals}{value}"
            continue
        if not flag.startswith("--") or name not in parameters:
            yield word
            continue
        kind = parameters[name].annotation
        following = words[position + 1] if position + 1 < len(words) else ""
        yield f"--{name}{'+' if kind == (list[str] | None) else ''}{equals}{value}"
        if kind is bool and not equals and following.lower() not in ("true", "false"):
            yield "true"


def _description(docstring: str | None) -> str:
    """The part of a docstring before its Args, with each paragraph on one line."""
    text = (docstring or "").split("Args:")[0].strip()
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


if __name__ == "__main__":
    main()
