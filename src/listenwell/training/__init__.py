"""Training: recipes, stages, the loop, checkpoints."""

from listenwell.training.recipe import Recipe
from listenwell.training.recipe_files import load_recipe, recipe_names

__all__ = ["Recipe", "load_recipe", "recipe_names"]
