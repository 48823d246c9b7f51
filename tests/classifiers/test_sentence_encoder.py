"""Sentence embeddings: batches against single sentences, and the real encoder's known nearest neighbors."""

import numpy as np
import pytest
import torch

from listenwell.backbones import BackboneError, find_backbone
from listenwell.classifiers.sentence_encoder import SentenceEncoder, sentence_encoder

TEXTS = ["I am so happy today!", "no", "", "Why did you go there all alone?", "no"]


@pytest.fixture
def encoder(tiny_backbone):
    return SentenceEncoder(str(tiny_backbone))


def test_a_sentence_is_the_mean_of_its_positions_of_length_one(encoder):
    vectors = encoder.embed(TEXTS)
    assert vectors.shape == (5, encoder.width)
    for vector, text in zip(vectors, TEXTS, strict=True):
        ids = [encoder.tokenizer.start, *encoder.tokenizer.encode(text), encoder.tokenizer.end]
        with torch.inference_mode():
            mean = encoder.encoder.model(torch.tensor([ids]))[0].mean(dim=0)
        np.testing.assert_allclose(vector, mean / mean.norm(), atol=1e-5)


def test_equal_sentences_are_read_once_and_all_are_told_of(encoder, monkeypatch):
    read, progress = [], []
    forward = encoder.encoder.forward
    monkeypatch.setattr(
        encoder.encoder, "forward", lambda tokens, mask: (read.append(len(tokens)), forward(tokens, mask))[1]
    )
    vectors = encoder.embed(TEXTS, progress.append)
    assert (sum(read), sum(progress)) == (4, 5)
    assert np.array_equal(vectors[1], vectors[4])


def test_a_long_sentence_is_cut(encoder):
    assert encoder.longest == 38
    one, other = encoder.embed(["happy " * 60, "happy " * 90])
    assert np.array_equal(one, other)


def test_one_text_and_a_missing_encoder_are_told(encoder, tmp_path):
    with pytest.raises(ValueError, match="a list of texts is embedded, found one text: 'hello'"):
        encoder.embed("hello")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BackboneError, match=r"no config\.json or tokenizer\.json"):
        sentence_encoder(str(tmp_path / "empty"))


def test_an_encoder_is_made_once(tiny_backbone):
    assert sentence_encoder(str(tiny_backbone)) is sentence_encoder(str(tiny_backbone))


def test_the_packaged_encoder_knows_what_is_near():
    try:
        find_backbone("minilm")
    except OSError:
        pytest.skip("the packaged MiniLM is not installed")
    encoder = sentence_encoder()
    job, fired, cat = encoder.embed(["I lost my job today.", "They fired me this morning.", "The cat is on the roof."])
    assert encoder.name == "sentence-transformers/all-MiniLM-L6-v2"
    assert job @ fired > 0.4 > 0.2 > job @ cat
