"""The packages of listenwell import each other in one direction only, including lazy imports."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import listenwell

ROOT = Path(listenwell.__file__).parent


def modules() -> dict[str, Path]:
    modules_by_name = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        modules_by_name[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules_by_name


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Every listenwell module that a file imports, wherever the import is."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "listenwell":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "listenwell")


def package(module: str) -> str:
    """The package or module directly below listenwell; the root itself is what users import."""
    _, *inner = module.split(".")
    return inner[0] if inner else ""


def graph() -> dict[str, set[str]]:
    known, edges = modules(), defaultdict(set)
    for module, path in known.items():
        for target in imports(path, known):
            if package(module) and package(target) and package(module) != package(target):
                edges[package(module)].add(package(target))
    return edges


def cycle(edges: dict[str, set[str]]) -> list[str]:
    """The packages of one import cycle, in order; empty if there is none."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for target in sorted(edges.get(name, ())):
            if loop := visit(target, [*way, name]):
                return loop
        done.add(name)
        return []

    return next((loop for name in sorted(edges) if (loop := visit(name, []))), [])


def test_no_two_packages_import_each_other():
    assert not (loop := cycle(graph())), " → ".join(loop)


def test_a_cycle_would_be_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]


def test_models_and_layers_know_no_files_systems_or_commands():
    edges = graph()
    for name in ("contract", "labels", "layers", "decoding", "models"):
        assert not edges[name] & {"systems", "loading", "commands", "evaluation", "training", "checkpoint"}
