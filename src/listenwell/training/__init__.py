"""Training: recipes, stages, the loop, checkpoints."""

from listenwell.training.recipe import Recipe, load_recipe, shipped_recipes

__all__ = ["Recipe", "load_recipe", "shipped_recipes"]
