"""Text to tokens and back."""

from listenwell.text.tokenizer import TextConfig, Tokenizer, backbone_tokenizer, train_tokenizer
from listenwell.text.words import detokenize, words

__all__ = ["TextConfig", "Tokenizer", "backbone_tokenizer", "detokenize", "train_tokenizer", "words"]
