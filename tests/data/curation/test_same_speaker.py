"""The shipped same-speaker classifier: its decisions on clear cases, and its provenance."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from listenwell.data.curation.cues import Cue
from listenwell.data.curation.same_speaker import CERTAIN, WEIGHTS, feature_codes, same_speaker, shipped_model
from listenwell.data.curation.speaker_features import TEMPLATES, codes, features
from listenwell.data.curation.training import Pairs, scores, train, write
from listenwell.data.curation.turns import split_dashes

TALK = [
    "I was at the office all day, and then",
    "I went home and made some dinner.",
    "Did you eat?",
    "No, I didn't.",
    "- Why not? - I wasn't hungry.",
    "...so I went to bed.",
]


def made(texts: list[str], timed: bool = True) -> list[Cue]:
    return split_dashes(
        [
            Cue("f", n, 2.0 * n if timed else None, 2.0 * n + 1.5 if timed else None, text)
            for n, text in enumerate(texts, start=1)
        ]
    )


def test_one_score_between_each_two_sentences() -> None:
    cues = made(TALK)
    assert same_speaker(cues).shape == (len(cues) - 1,)
    assert same_speaker(cues[:1]).shape == same_speaker([]).shape == (0,)


@pytest.mark.parametrize("timed", [True, False])
def test_plain_cases(timed: bool) -> None:
    score = same_speaker(made(TALK, timed))
    assert score[0] > 0  # the sentence is not finished
    assert score[2] < 0  # a question and its answer
    assert score[4] < 0  # dashes within a cue


def test_chinese_has_weights_of_its_own() -> None:
    cues = made(["你去哪里了？", "我在家。", "- 真的吗？ - 是的。"])
    assert same_speaker(cues, "zh")[0] < 0
    assert same_speaker(cues, "zh")[-1] < 0
    assert same_speaker(cues, "fr").shape == (3,)


def test_names_in_the_file_decide() -> None:
    cues = [Cue("f", n, None, None, "I was at the office and", speaker=name) for n, name in enumerate("AABA")]
    assert same_speaker(cues).tolist() == [CERTAIN, -CERTAIN, -CERTAIN]


def test_where_each_speaker_begins_with_a_dash_that_decides() -> None:
    lines = [
        "- I was so jealous of your sister.",
        "- I know that. But it",
        "was not her fault.",
        "- It was the weather.",
    ]
    scores = same_speaker(made(lines))
    assert scores.tolist()[0] == scores.tolist()[-1] == -CERTAIN
    assert scores[2] > 0  # no dash: the same speaker continues
    # One such cue among many does not establish a convention for the file.
    assert same_speaker(made(TALK * 6 + lines[-1:]))[-1] > -CERTAIN


def test_scores_do_not_depend_on_other_files_or_repetition() -> None:
    cues = made(TALK)
    assert np.array_equal(same_speaker(cues), same_speaker(list(cues)))


def test_the_weights_hold_numbers_only() -> None:
    with safe_open(WEIGHTS, framework="numpy") as file:
        assert sorted(file.keys()) == ["en.codes", "en.weights", "zh.codes", "zh.weights"]
        assert sorted(json.loads(file.metadata()["about"])) == ["bias", "templates"]
    assert WEIGHTS.stat().st_size < 1_000_000


def test_every_code_belongs_to_one_template() -> None:
    columns = feature_codes(made(TALK), "en")
    offset = 0
    for template, column in zip(TEMPLATES, columns, strict=True):
        _, size = codes(features(made(TALK), "en"), template)
        assert column.min() >= offset
        assert column.max() < offset + size
        offset += size
    assert shipped_model("en").codes.max() < offset


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=30), max_size=6), st.sampled_from(["en", "zh"]))
def test_any_text_gets_a_finite_score(texts: list[str], language: str) -> None:
    assert np.isfinite(same_speaker(made(texts), language)).all()


def test_training_learns_a_rule_and_its_file_is_read_back(tmp_path: pytest.TempPathFactory) -> None:
    rng = np.random.default_rng(0)
    same = rng.integers(0, 2, 400)
    noise = rng.integers(10, 14, 400)
    none = np.zeros(400, dtype=bool)
    pairs = Pairs(np.stack([same, noise], axis=1), same, none, np.zeros(400, dtype=int), none)
    model = train(pairs, 0.1)
    assert np.array_equal(scores(model, pairs) > 0, same == 1)
    path = tmp_path / "weights.safetensors"  # type: ignore[operator]
    write({"en": model}, path)
    with safe_open(path, framework="numpy") as file:
        assert np.array_equal(file.get_tensor("en.codes"), model.codes)
