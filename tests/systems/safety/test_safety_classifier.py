"""The English classifier: what it finds alone, how it is combined with the rules, how it is trained."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from listenwell.checkpoint import from_eight_bit
from listenwell.data.sources import jsonl
from listenwell.labels.sets import CRISIS
from listenwell.systems.safety import classifier, detect, training
from listenwell.systems.safety.classifier import SIGNS, Prediction
from listenwell.systems.safety.detector import ALONE, BACKED, Sign, decide, rules
from listenwell.systems.safety.status import classifier_file
from listenwell.systems.safety.training import Case
from listenwell.training import load_recipe
from listenwell.training.run import train

NORMAL = rules("en").normal
needs_backbone = pytest.mark.skipif(classifier.backbone() is None, reason="no package carries MiniLM here")


@pytest.fixture
def _without_classifier(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(classifier, "backbone", lambda: None)
    classifier.english_classifier.cache_clear()
    yield
    classifier.english_classifier.cache_clear()


def the_classifier() -> classifier.CrisisClassifier:
    present = classifier.english_classifier(NORMAL)
    assert present is not None
    return present


def test_its_classes_are_the_signs():
    assert CRISIS.labels == ("none", *(", ".join(sign) for sign in SIGNS))


@needs_backbone
def test_it_is_the_shipped_weights_on_the_published_embeddings():
    """Everything in english.safetensors is used, and only MiniLM's embeddings come from elsewhere."""
    model, stored = the_classifier().model, from_eight_bit(load_file(classifier_file()))
    weights = model.state_dict()
    assert {classifier.name_in_file(name) for name in classifier.learned_names(model)} == set(stored)
    for name in classifier.learned_names(model):
        assert torch.equal(weights[name], stored[classifier.name_in_file(name)])
    folder = classifier.backbone()
    published = load_file(folder / "model.safetensors")
    for name in model.borrowed():
        assert torch.equal(weights[name], published[name.removeprefix("backbone.model.")])


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
    """Against a slow computation: each view alone, with their log-probabilities averaged."""
    ours, text = the_classifier(), "im gonna be gone by 2morrow"
    with torch.inference_mode():
        each = []
        for view in (text, NORMAL(text)):
            tokens, mask = classifier.padded(ours.tokenizer.pieces(view))
            each.append(ours.model.token_logits(tokens, mask).log_softmax(-1)[0])
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


@pytest.fixture
def tokenizer() -> classifier.MessageTokenizer:
    folder = classifier.backbone()
    assert folder is not None
    return classifier.MessageTokenizer(folder, NORMAL)


TALK = ["I had toast for breakfast", "We went to the lake with my cousins", "My train was late again"]
ORDINARY = training.Ordinary(TALK, ["What happened?", "I see."])


@needs_backbone
def test_every_case_comes_once_a_round_among_ordinary_talk(tokenizer: classifier.MessageTokenizer):
    cases = training.read_cases()[::50]
    taught = list(training.lessons(cases, ORDINARY, tokenizer, rounds=2))
    assert taught == list(training.lessons(cases, ORDINARY, tokenizer, rounds=2))
    labels = [lesson.turns[0].label.name for lesson in taught]
    assert labels == 2 * [*(CRISIS.labels[case.label] for case in cases), *(["none"] * len(TALK))]
    first, second = taught[: len(taught) // 2], taught[len(taught) // 2 :]
    assert [one.turns for one in first] != [one.turns for one in second], "in another setting, or read in another way"
    assert all(len(tokenizer.tokenizer.encode(one.turns[0].text).ids) <= classifier.LONGEST for one in taught)


@needs_backbone
def test_of_a_long_text_the_end_is_learned(tokenizer: classifier.MessageTokenizer):
    text = f"{'We went to the market and bought apples. ' * 40}I want to die."
    assert tokenizer.ending("I want to die.") == "I want to die."
    assert text.endswith(tokenizer.ending(text))
    assert [tokenizer.pieces(tokenizer.ending(text))[0]] == tokenizer.last(text)


@needs_backbone
def test_the_recipe_trains_a_classifier_as_care_reads_it(tokenizer, tmp_path):
    """On a few cases, with the lower layers frozen: enough to separate clear signs from ordinary talk."""
    signs = [Case("I want to die", 1), Case("I am going to kill myself tonight", 1), Case("I wish I were dead", 1)]
    talk = training.Ordinary([*TALK, "The soup needs salt", "Good morning!", "I like your garden"], ["I see."])
    lessons = training.lessons(signs, talk, tokenizer, rounds=6)
    jsonl.write([*lessons, *training.checks(signs, tokenizer)], tmp_path / "lessons.jsonl")
    changes = [f"data.source={tmp_path / 'lessons.jsonl'}", "model.upper=1", "stages.0.streams.train.examples=9"]
    changes += ["stages.0.optimizers.main.warmup=1", "stages.0.optimizers.main.rate=1e-3", "stages.0.validate_every=1"]
    recipe = load_recipe(training.RECIPE, changes)
    train(recipe, tmp_path / "run", quiet=True)
    model = training.trained_model(tmp_path / "run")
    trained = classifier.CrisisClassifier(tokenizer, model)
    odds = {text: trained.predict(text).odds for text in [*(sign.text for sign in signs), *talk.talk]}
    assert min(odds[sign.text] for sign in signs) > max(odds[text] for text in talk.talk)


@needs_backbone
def test_weights_are_written_as_they_are_read(tmp_path, monkeypatch):
    model = the_classifier().model
    training.write_weights(model, tmp_path / "english.safetensors")
    monkeypatch.setattr(classifier, "classifier_file", lambda: tmp_path / "english.safetensors")
    again = classifier.crisis_model(classifier.backbone())
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], weight, atol=1e-3, rtol=1e-3)


def test_frames_are_filled_and_always_alike():
    cases = training.frames()
    assert cases == training.frames()
    assert {case.label for case in cases} >= {0, 1, 2, 3, 4, 5}
    assert not any(mark in case.text for case in cases for mark in "{}/")
    assert len({case.text for case in cases}) == len(cases)


def test_every_batch_of_cases_has_signs_and_ordinary_talk():
    cases = training.read_cases()
    assert len({(case.batch, case.text) for case in cases}) == len(cases)
    assert len({(case.label, case.text) for case in cases}) == len({case.text for case in cases})  # in agreement
    for batch in {case.batch for case in cases}:
        assert {case.sign for case in cases if case.batch == batch} == {"direct", "indirect", None}


def test_held_out_cases_were_not_trained_on():
    """Except for a few sentences so common that several people wrote them."""
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
    inner = ours.model.token_logits
    monkeypatch.setattr(
        ours.model, "token_logits", lambda tokens, mask: at_once.append(len(tokens)) or inner(tokens, mask)
    )
    prediction = ours.predict(text)
    assert max(at_once) == classifier.AT_ONCE
    assert (prediction.kind, prediction.directness) == ("self-harm", "direct")
    monkeypatch.setattr(classifier, "AT_ONCE", 10_000)
    assert ours.predict(text).odds == pytest.approx(prediction.odds, abs=1e-4)
