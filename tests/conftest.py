"""Shared fixtures: a single thread, a small corpus, a word tokenizer, tiny models and recipes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from listenwell.checkpoint import Checkpoint, write_json
from listenwell.contract import Model, WordPrior
from listenwell.data.batching import Encoded, EncodingConfig, encode
from listenwell.data.dialogue import examples
from listenwell.data.sources import jsonl, shipped
from listenwell.decoding import Decoding
from listenwell.models import build, current_model
from listenwell.text import TextConfig, Tokenizer, backbone_tokenizer, train_tokenizer
from listenwell.training import run
from listenwell.training.recipe import DataConfig, Move, Optimizer, Recipe, Stage, Stream, Validation

SPARE = 5
"""Rows of a language model's word table that stand for no token, as many backbones have them."""

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where tests marked `data` find the real corpora, if LISTENWELL_DATA does not say otherwise."""


def pytest_configure(config: pytest.Config) -> None:
    if BESIDE_THE_CHECKOUT.is_dir():
        os.environ.setdefault("LISTENWELL_DATA", str(BESIDE_THE_CHECKOUT))
    # Tensors have a few hundred numbers: a second thread would only wait for the first.
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _quickly() -> Iterator[None]:
    """Draw no learning curves and do not wait for the disk (fsync), so that a tiny training is fast.

    No test can cut the power, and what a killed process leaves behind does not depend on the disk.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, "draw", lambda folder: None)
        patched.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A .jsonl file with a few of the shipped dialogues, of many emotions: 22 for training, 5 for validation."""
    path = tmp_path_factory.mktemp("corpus") / "small.jsonl"
    jsonl.write([*list(shipped.read("train"))[:128:6], *list(shipped.read("valid"))[:32:7]], path)
    return path


@pytest.fixture(scope="session")
def tokenizer(small_corpus: Path) -> Tokenizer:
    """A word tokenizer built from the training texts of the small corpus."""
    texts = (turn.text for dialogue in jsonl.read(small_corpus, "train") for turn in dialogue.turns)
    return train_tokenizer(texts, TextConfig())


@pytest.fixture(scope="session")
def encoded(small_corpus: Path, tokenizer: Tokenizer) -> Encoded:
    """All replies of the small corpus's validation split as ids."""
    items = [item for dialogue in jsonl.read(small_corpus, "valid") for item in examples(dialogue)]
    return encode(items, tokenizer, EncodingConfig())


@pytest.fixture(scope="session")
def tiny_model(tokenizer: Tokenizer) -> Callable[..., Model]:
    """Make a model of width 16 with all weights random, so that no part is hidden by zeros."""

    def make(name: str = "multi-trs", **choices: Any) -> Model:
        torch.manual_seed(7)
        sizes = {"width": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 2, "decoder_layers": 2}
        wanted = current_model({"name": name, **sizes, **choices})  # an ablation may be given as one word
        model = build(wanted.pop("name"), wanted, tokenizer.vocabulary)
        model.initialise(WordPrior(torch.randint(0, 50, (len(tokenizer),))))
        for parameter in model.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
        return model.eval()

    return make


def word_pieces(texts: list[str], size: int = 300) -> dict[str, int]:
    """Every letter, both word-initial and word-internal, and the most common words.

    The library's own trainer numbers its pieces differently in every process, which would change the tiny model.
    """
    words = Counter(
        word for text in texts for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text.lower())
    )
    letters = sorted(set("".join(words)))
    common = sorted(words, key=lambda word: (-words[word], word))
    pieces = dict.fromkeys([*SPECIALS, *letters, *(f"##{letter}" for letter in letters), *common])
    return {piece: number for number, piece in enumerate(islice(pieces, size))}


@pytest.fixture(scope="session")
def tiny_backbone(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pretrained BERT encoder with two layers and random weights, with its tokenizer."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("backbone")
    texts = [turn.text for dialogue in jsonl.read(small_corpus) for turn in dialogue.turns]
    backend = Backend(models.WordPiece(word_pieces(texts), unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.add_special_tokens(SPECIALS)
    backend.save(str(folder / "tokenizer.json"))
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config = transformers.AutoConfig.for_model(
        "bert", vocab_size=backend.get_vocab_size(), max_position_embeddings=40, initializer_range=0.3, **sizes
    )
    torch.manual_seed(3)
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    return folder


@pytest.fixture
def tiny_classifier(tiny_backbone: Path) -> Callable[..., Checkpoint]:
    """Make a classifier on the tiny backbone with a random last layer, so that predictions differ between texts."""

    def make(**choices: Any) -> Checkpoint:
        tokenizer = backbone_tokenizer(str(tiny_backbone))
        torch.manual_seed(5)
        model = build("emotion-intent", {"backbone": str(tiny_backbone), **choices}, tokenizer.vocabulary)
        model.initialise(WordPrior(torch.ones(len(tokenizer))))
        torch.nn.init.normal_(model.out.weight, std=1.0)
        return Checkpoint("emotion-intent", model.eval(), tokenizer, EncodingConfig(max_reply=30))

    return make


@pytest.fixture
def tiny_listener(tiny_backbone: Path) -> Callable[..., Checkpoint]:
    """Make a listener on the tiny backbone; the rest is random, so that speakers and positions matter."""

    def make(**choices: Any) -> Checkpoint:
        tokenizer = backbone_tokenizer(str(tiny_backbone))
        torch.manual_seed(6)
        model = build("house-listener", {"backbone": str(tiny_backbone), **choices}, tokenizer.vocabulary)
        model.initialise(WordPrior(torch.ones(len(tokenizer))))
        for parameter in [*model.heads.parameters(), *model.speakers.parameters()]:
            torch.nn.init.normal_(parameter, std=1.0)
        return Checkpoint("house-listener", model.eval(), tokenizer, EncodingConfig(max_context=36, separators=True))

    return make


@pytest.fixture
def tiny_chooser(tiny_backbone: Path) -> Callable[..., Checkpoint]:
    """Make a chooser on the tiny backbone with a random head, so that predictions differ between replies."""

    def make(**choices: Any) -> Checkpoint:
        tokenizer = backbone_tokenizer(str(tiny_backbone))
        torch.manual_seed(8)
        model = build("chooser", {"backbone": str(tiny_backbone), "upper": 1, **choices}, tokenizer.vocabulary)
        model.initialise(WordPrior(torch.ones(len(tokenizer))))
        for parameter in model.head.parameters():
            torch.nn.init.normal_(parameter, std=1.0)
        encoding = EncodingConfig(max_context=20, max_reply=16, separators=True)
        return Checkpoint("chooser", model.eval(), tokenizer, encoding)

    return make


@pytest.fixture
def tiny_epitome(tiny_backbone: Path) -> Callable[..., Checkpoint]:
    """Make an empathy classifier on the tiny backbone with random heads, so that predictions differ between pairs."""

    def make(**choices: Any) -> Checkpoint:
        tokenizer = backbone_tokenizer(str(tiny_backbone))
        torch.manual_seed(8)
        model = build("epitome", {"backbone": str(tiny_backbone), "upper": 1, **choices}, tokenizer.vocabulary)
        model.initialise(WordPrior(torch.ones(len(tokenizer))))
        for parameter in model.heads.parameters():
            torch.nn.init.normal_(parameter, std=1.0)
        shares = torch.tensor([[0.6, 0.3, 0.1], [0.5, 0.1, 0.4], [0.8, 0.05, 0.15]])
        model.shares.copy_(shares)
        encoding = EncodingConfig(max_context=20, max_reply=18, separators=True)
        return Checkpoint("epitome", model.eval(), tokenizer, encoding)

    return make


@pytest.fixture(scope="session")
def tiny_chat_model(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Llama chat model with two layers and random weights, with its tokenizer."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("chat-model")
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    texts = [turn.text for dialogue in jsonl.read(small_corpus) for turn in dialogue.turns]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=[AddedToken(token, special=True) for token in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator([*texts, "user assistant answers"] * 2, trainer)
    backend.save(str(folder / "tokenizer.json"))
    config = transformers.LlamaConfig(
        vocab_size=backend.get_vocab_size() + SPARE,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        initializer_range=0.3,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(3)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def tiny_writer(tiny_chat_model: Path) -> Callable[..., Checkpoint]:
    """Make a writer on the tiny chat model with nonzero adapters (fresh ones are zero)."""

    def make(decoding: Decoding | None = None, **choices: Any) -> Checkpoint:
        pytest.importorskip("peft")
        tokenizer = backbone_tokenizer(str(tiny_chat_model))
        torch.manual_seed(4)
        model = build("house-writer", {"backbone": str(tiny_chat_model), "rank": 3, **choices}, tokenizer.vocabulary)
        model.initialise(WordPrior(torch.ones(len(tokenizer))))
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter, std=0.3)
        encoding = EncodingConfig(turns="chatml")
        return Checkpoint("house-writer", model.eval(), tokenizer, encoding, decoding or Decoding())

    return make


@pytest.fixture
def score_run() -> Callable[[Path], None]:
    """Write the result of an evaluation of a run on the test split, which a card needs."""

    def write(run: Path) -> None:
        folder = run / "evaluation" / "test"
        folder.mkdir(parents=True, exist_ok=True)
        score = {"name": "bleu-4", "value": 1.5, "unit": "", "signature": "bleu"}
        write_json(folder / "scores.json", {"about": {"data": "shipped", "split": "test"}, "scores": [score]})

    return write


@pytest.fixture(scope="session")
def tiny_stage() -> Callable[..., dict[str, Any]]:
    """Make a stage of a dozen updates with a validation after every fourth; fields can be overridden."""

    def make(**fields: Any) -> dict[str, Any]:
        stage = {
            "name": "joint",
            "examples": 96,
            "validate_every": 0.5,
            "streams": {"train": {"examples": 8}},
            "optimizers": {"main": {"rate": 5e-3, "warmup": 4}},
        }
        return {**stage, **fields}

    return make


@pytest.fixture(scope="session")
def tiny_recipe(small_corpus: Path, tiny_stage: Callable[..., dict[str, Any]]) -> Callable[..., Recipe]:
    """Make a recipe that trains in a fraction of a second; fields can be overridden."""

    def make(**fields: Any) -> Recipe:
        # Built by hand: the parser of recipe files takes as long as a tiny run.
        stages = [_stage(stage) for stage in fields.pop("stages", [tiny_stage()])]
        data = DataConfig(**fields.pop("data", {"source": str(small_corpus)}))
        model = {"name": "multi-trs", "width": 16, "heads": 2, "feed_forward": 24}
        return Recipe(**{"name": "tiny", "model": model, "data": data, "stages": stages, **fields})

    return make


def _stage(fields: dict[str, Any]) -> Stage:
    stage = dict(fields)
    stage["moves"] = [Move(**move) for move in stage.get("moves", [{}])]
    for key, cls in (("streams", Stream), ("optimizers", Optimizer)):
        stage[key] = {name: cls(**options) for name, options in stage[key].items()}
    if stage.get("valid"):
        stage["valid"] = Validation(**stage["valid"])
    return Stage(**stage)
