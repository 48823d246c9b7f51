"""Pages of the site that are made from the package itself, so that they cannot drift: commands, recipes, API, weights.

SAFETY.md and CHANGELOG.md are read from the root of the repository.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]


def on_files(files: Files, config: Any) -> Files:
    pages = {
        "reference/commands.md": commands,
        "reference/recipes.md": recipes,
        "reference/python.md": python_api,
        "reference/equations.md": equations,
        "reference/weights.md": weights,
        "safety.md": lambda: _root_page("SAFETY.md"),
        "changelog.md": lambda: _root_page("CHANGELOG.md"),
    }
    for name, make in pages.items():
        files.append(File.generated(config, name, content=make()))
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:
    """No page asks another host for anything: the one script that the theme would fetch is among our own files."""
    depth = page.url.count("/")
    return re.sub(r"https://unpkg\.com/iframe-worker/shim", "../" * depth + "assets/iframe-worker-shim.js", output)


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    return output_content.replace("https://unpkg.com/iframe-worker/shim", "assets/iframe-worker-shim.js")


def _root_page(name: str) -> str:
    """A page of the repository's root, with its links to other pages as they are within the site."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.sub(r"\]\((?:docs/)?([\w/.-]+\.md)(#[\w-]+)?\)", r"](\1\2)", text)


def commands() -> str:
    """Every command with its options, from the signatures and docstrings that the command line is made of."""
    from docstring_parser import parse

    from listenwell.cli import COMMANDS

    parts = ["# Commands", "", "`listenwell COMMAND --help` prints the same."]
    for name, (place, about) in COMMANDS.items():
        module, function_name = place.split(":")
        function = getattr(import_module(module), function_name)
        described = parse(function.__doc__ or "")
        parts += ["", f"## {name}", "", f"*{about}*", ""]
        parts += [text for text in (described.short_description, described.long_description) if text]
        parts += ["", "| option | default | meaning |", "|---|---|---|"]
        meanings = {entry.arg_name: " ".join((entry.description or "").split()) for entry in described.params}
        for option in inspect.signature(function).parameters.values():
            required = option.default is option.empty
            flag = f"`{option.name.upper()}`" if required else f"`--{option.name.replace('_', '-')}`"
            default = "" if required or option.default is None else f"`{option.default}`"
            parts.append(f"| {flag} | {default} | {_cell(meanings.get(option.name, ''))} |")
    return "\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def recipes() -> str:
    from listenwell.training import load_recipe, recipe_names

    rows = []
    for name in recipe_names():
        recipe = load_recipe(name)
        rows.append(f"| `{name}` | {_cell(recipe.about)} | `{recipe.model['name']}` | {_cell(recipe.row or '')} |")
    head = ["# Recipes", "", "`listenwell train NAME` trains one; a recipe is a YAML file inside the package.", ""]
    return "\n".join([*head, "| recipe | what it is | model | row of a paper |", "|---|---|---|---|", *rows]) + "\n"


def python_api() -> str:
    import listenwell

    parts = ["# Python", "", "What `import listenwell` offers."]
    for name in sorted(listenwell.__all__):
        thing = getattr(listenwell, name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        parts += _entry(f"## {name}", name, thing)
        if inspect.isclass(thing):
            methods = inspect.getmembers(thing, inspect.isfunction)
            for method, function in methods:
                if not method.startswith("_") and function.__doc__:
                    parts += [
                        "",
                        f"### {name}.{method}",
                        "",
                        "```python",
                        _signature(method, function),
                        "```",
                        "",
                        _doc(function),
                    ]
    return "\n".join(parts) + "\n"


def _entry(title: str, name: str, thing: Any) -> list[str]:
    return ["", title, "", "```python", _signature(name, thing), "```", "", _doc(thing)]


def _signature(name: str, thing: Any) -> str:
    try:
        return "\n".join(textwrap.wrap(f"{name}{inspect.signature(thing)}", 110, subsequent_indent="    "))
    except (TypeError, ValueError):
        return name


def _doc(thing: Any) -> str:
    return _cell(inspect.cleandoc(thing.__doc__ or "")).replace("\\|", "|")


LINK = re.compile(r"\[`[\w.]+`\]\(\.\./reference/equations\.md#([\w-]+) \"([\w.]+)\"\)")
"""How a paper's page names the code of an equation: the anchor, and the code by its full name."""


def equation_code() -> dict[str, str]:
    """All code that the papers' pages name for an equation, by the anchor of its source."""
    pages = (page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "papers").glob("*.md")))
    return {anchor: name for text in pages for anchor, name in LINK.findall(text)}


def find_code(name: str) -> Any:
    """A module, class or function of listenwell by its full name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(["listenwell", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing.fget if isinstance(thing, property) else thing
    raise AttributeError(f"listenwell has no {name}")


def equations() -> str:
    """The source of what the papers' pages link their equations to; of a module, what it says of itself."""
    parts = ["# Code of the equations", "", "What the pages of the papers link their equations to."]
    for anchor, name in sorted(equation_code().items(), key=lambda pair: pair[1]):
        thing = find_code(name)
        parts += ["", f"## {name} {{#{anchor}}}", ""]
        if inspect.ismodule(thing):
            parts += [_doc(thing)]
        else:
            parts += ["```python", textwrap.dedent(inspect.getsource(thing)).rstrip(), "```"]
    return "\n".join(parts) + "\n"


def weights() -> str:
    """Every system that ships: what it learned from, its size and what may be done with it."""
    from listenwell.weights import distribution_of, shipped

    head = ["# Shipped weights", "", "| system | in | size | learned from | licence |", "|---|---|---|---|---|"]
    rows = []
    for name, place in sorted(shipped().items()):
        meta = json.loads((place / "meta.json").read_text(encoding="utf-8"))
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / 1e6
        data = meta.get("data", {}).get("source") or meta.get("recipe", {}).get("data", {}).get("source", "")
        row = (f"`{name}`", f"`{distribution_of(name) or 'this repository'}`", f"{size:.1f} MB", data, _licence(place))
        rows.append(f"| {' | '.join(row)} |")
    return "\n".join([*head, *rows]) + "\n"


def _licence(place: Path) -> str:
    """What the card says of it."""
    card = (place / "CARD.md").read_text(encoding="utf-8")
    match = re.search(r"\*\*Licence:\*\*(.*?)(?:\n- |\n\n|\Z)", card, re.S)
    return "" if match is None else _cell(" ".join(match[1].split()))
