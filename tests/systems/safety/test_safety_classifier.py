"""The English classifier: what it finds alone, how it is weighed against the rules, how it is trained."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from listenwell.systems.safety import classifier, detect, training
from listenwell.systems.safety.classifier import SIGNS, Prediction
from listenwell.systems.safety.detector import ALONE, BACKED, Sign, decide, rules

NORMAL = rules("en").normal
needs_backbone = pytest.mark.skipif(classifier.backbone() is None, reason="no package carries MiniLM here")


@pytest.fixture
def _without_classifier(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(classifier, "backbone", lambda: None)
    classifier.english_classifier.cache_clear()
    yield
    classifier.english_classifier.cache_clear()


@pytest.fixture(scope="module")
def trainer() -> training.Trainer:
    folder = classifier.backbone()
    assert folder is not None
    return training.Trainer(folder)


def the_classifier() -> classifier.CrisisClassifier:
    found = classifier.english_classifier(NORMAL)
    assert found is not None
    return found


@needs_backbone
def test_its_layers_are_those_of_the_published_encoder(trainer: training.Trainer):
    """Before anything is learned, embeddings and layers say what transformers makes of the same files."""
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModel.from_pretrained(classifier.backbone(), local_files_only=True).eval()
    rows = [
        part
        for text in ("Good morning!", "I do not know what to say to her now")
        for part in trainer.tokenizer.parts(text)
    ]
    tokens, mask = classifier.padded(rows)
    with torch.inference_mode():
        ours = trainer.embed(tokens)
        for layer in classifier.Encoder(trainer.weights).eval().layers:
            ours = layer(ours, mask)
        expected = theirs(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
    torch.testing.assert_close(ours[mask], expected[mask], rtol=1e-4, atol=1e-5)


@needs_backbone
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I hit my head against the wall on purpose until I pass out", "self-harm"),
        ("My uncle keeps coming into the bathroom when I shower and I can't lock it", "danger"),
        ("I have violent urges towards my baby", "harm-to-others"),
    ],
)
def test_it_hears_what_no_rule_thought_of(text: str, kind: str):
    assert rules("en").look(text) is None
    sign = detect(text)
    assert sign is not None
    assert sign.kind == kind
    assert sign.why.startswith("learned")
    assert sign.words


@needs_backbone
def test_it_speaks_against_a_rule_that_took_ordinary_talk_for_a_sign():
    text = "I won't be around at the weekend, can we meet on Monday?"
    assert rules("en").look(text) is not None
    assert detect(text) is None


@pytest.mark.usefixtures("_without_classifier")
def test_without_its_backbone_the_rules_serve_alone():
    sign = detect("I want to kill myself")
    assert sign is not None
    assert sign.why.startswith("kill myself")
    assert detect("I hit my head against the wall on purpose until I pass out") is None
    assert detect("I had toast for breakfast") is None


def test_the_classifier_alone_must_be_surer_than_with_a_rule():
    def predicted(odds: float) -> Prediction:
        return Prediction("danger", "indirect", odds)

    assert decide("some words", None, predicted(ALONE - 0.1)) is None
    learned = decide("Some words", None, predicted(ALONE + 0.1))
    assert learned == Sign("danger", "indirect", "en", "some words", learned.why if learned else "")
    sign = Sign("self-harm", "direct", "en", "words", "why")
    assert BACKED < ALONE
    assert decide("some words", sign, predicted(BACKED + 0.1)) is sign
    assert decide("some words", sign, predicted(BACKED - 0.1)) is None


@needs_backbone
def test_each_language_of_a_message_is_heard():
    assert detect("今天天气很好。 I hit my head against the wall on purpose until I pass out") is not None
    chinese = detect("I had toast for breakfast. 我不想活了")
    assert chinese is not None
    assert chinese.language == "zh"


@needs_backbone
def test_both_views_of_a_message_count_alike():
    """Against a slow computation: each view alone, their log-probabilities averaged."""
    ours, text = the_classifier(), "im gonna be gone by 2morrow"
    with torch.inference_mode():
        each = []
        for view in (text, NORMAL(text)):
            tokens, mask = classifier.padded(ours.tokenizer.pieces(view))
            each.append(ours.encoder(ours.embed(tokens), mask).log_softmax(-1)[0])
    mean = (each[0] + each[1]) / 2
    prediction = ours.predict(text)
    assert prediction.odds == pytest.approx(float(mean[1:].exp().sum().log() - mean[0]), abs=1e-4)
    assert (prediction.kind, prediction.directness) == SIGNS[int(mean[1:].argmax())]


@needs_backbone
def test_a_sign_at_the_end_of_a_long_message_is_heard():
    long = "We went to the market and bought apples, bread and a little cheese for the evening. " * 20
    parts = the_classifier().tokenizer.parts(long)
    assert len(parts) > 2
    assert max(map(len, parts)) <= classifier.LONGEST
    whole = [token for part in parts for token in part]
    assert set(the_classifier().tokenizer.tokenizer.encode(long).ids) == set(whole)
    assert detect(long) is None
    assert detect(long + "I am going to kill myself tonight.") is not None


@needs_backbone
def test_training_twice_gives_the_same_classifier(trainer: training.Trainer):
    cases = training.read_cases()[::200] + training.frames()[::100]
    talk = ["I had toast for breakfast", "We went to the lake with my cousins", "My train was late again"]
    replies = ["What happened?", "I see."]
    first, second = (trainer.train(cases, talk, replies, epochs=1).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    untouched = classifier.Encoder(trainer.weights).state_dict()
    assert not torch.equal(first["layers.1.expand.weight"], untouched["layers.1.expand.weight"])


def test_frames_are_filled_and_always_alike():
    made = training.frames()
    assert made == training.frames()
    assert {case.label for case in made} >= {0, 1, 2, 3, 4, 5}
    assert not any(mark in case.text for case in made for mark in "{}/")
    assert len({case.text for case in made}) == len(made)


def test_every_batch_of_cases_has_signs_and_ordinary_talk():
    cases = training.read_cases()
    assert len({(case.batch, case.text) for case in cases}) == len(cases)
    assert len({(case.label, case.text) for case in cases}) == len({case.text for case in cases})  # of one mind
    for batch in {case.batch for case in cases}:
        assert {case.sign for case in cases if case.batch == batch} == {"direct", "indirect", None}


def test_held_out_cases_were_not_trained_on():
    """Apart from a few sentences that are so common that several people wrote them."""
    trained_on = {NORMAL(case.text) for case in [*training.read_cases(), *training.frames()]}
    paths = sorted(Path(__file__).parent.glob("held_out*.jsonl"))
    cases = [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    single = [case.get("text") or case["turns"][0]["text"] for case in cases if len(case.get("turns", "1")) == 1]
    assert len(single) >= 900
    assert sum(NORMAL(text) in trained_on for text in single) <= 0.01 * len(single)


def test_importing_the_rules_does_not_import_torch():
    code = (
        "import sys, listenwell.systems.safety; "
        "print([name for name in ('torch', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@needs_backbone
def test_a_diary_is_read_a_few_parts_at_a_time_and_heard_as_if_at_once(monkeypatch):
    ours, text = (
        the_classifier(),
        " ".join(f"On day {day} I fed the dog, and then I wrote {day} lines." for day in range(20)),
    )
    text = f"{text} I want to kill myself. {text}"
    at_once = []
    inner = ours.embed.forward
    monkeypatch.setattr(ours.embed, "forward", lambda tokens: at_once.append(len(tokens)) or inner(tokens))
    prediction = ours.predict(text)
    assert max(at_once) == classifier.AT_ONCE
    assert (prediction.kind, prediction.directness) == ("self-harm", "direct")
    monkeypatch.setattr(classifier, "AT_ONCE", 10_000)
    assert ours.predict(text).odds == pytest.approx(prediction.odds, abs=1e-4)
