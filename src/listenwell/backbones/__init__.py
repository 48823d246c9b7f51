"""Pretrained encoders and language models, by name or path."""

from listenwell.backbones.locate import BackboneError, find_backbone

__all__ = ["BackboneError", "find_backbone"]
