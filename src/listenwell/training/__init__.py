"""Training: recipes, stages, the loop, checkpoints."""

from listenwell.training.recipe import Recipe, load_recipe, recipe_texts

__all__ = ["Recipe", "load_recipe", "recipe_texts"]
