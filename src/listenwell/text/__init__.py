"""Text to tokens and back."""

from listenwell.text.tokenizer import TextConfig, Tokenizer, train_tokenizer
from listenwell.text.words import detokenize, words

__all__ = ["TextConfig", "Tokenizer", "detokenize", "train_tokenizer", "words"]
