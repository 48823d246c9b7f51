from __future__ import annotations


def models(json: bool = False) -> None:
    """List the systems: their paper, whether trained weights are at hand, and the recipes that train them.

    Args:
        json: Print JSON instead of tables.
    """
    import json as encoder

    import yaml
    from rich.console import Console

    from listenwell.commands.display import table
    from listenwell.finding import card, shipped
    from listenwell.models import MODELS
    from listenwell.training.recipe import recipe_texts

    trained = shipped()
    recipes = {name: yaml.safe_load(text) for name, text in recipe_texts().items()}
    if json:
        known = [{"name": n, "about": e.about, "paper": e.paper, "trained": n in trained} for n, e in MODELS.items()]
        print(encoder.dumps({"systems": known, "recipes": {n: r.get("about", "") for n, r in recipes.items()}}))
        return
    console = Console()
    used = {recipe["model"]["name"] for recipe in recipes.values()}
    rows = [
        (name, entry.about, entry.paper, card(trained[name]) if name in trained else _untrained(name, used))
        for name, entry in MODELS.items()
    ]
    rows += [(name, "trained by you", "", card(place)) for name, place in trained.items() if name not in MODELS]
    console.print(table("Systems", ("name", "what it is", "paper", "state"), rows))
    described = [(name, recipe["model"]["name"], recipe.get("about", "")) for name, recipe in recipes.items()]
    console.print(table("Recipes (listenwell train RECIPE)", ("recipe", "system", "about"), described))


def _untrained(name: str, used: set[str]) -> str:
    return "untrained: see its recipe" if name in used else f"untrained: a recipe with --set model.name={name}"
