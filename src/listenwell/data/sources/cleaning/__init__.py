"""Cleaning talk from social media, as strategy memory does for Weibo (appendix A.1): steps, adverts, a pipeline."""

from listenwell.data.sources.cleaning.adverts import AdvertFinder, has_contact
from listenwell.data.sources.cleaning.pipeline import LONGEST, Cleaner, StepCount
from listenwell.data.sources.cleaning.steps import TEXT_STEPS

__all__ = ["LONGEST", "TEXT_STEPS", "AdvertFinder", "Cleaner", "StepCount", "has_contact"]
