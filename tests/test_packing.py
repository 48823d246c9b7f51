"""Packing systems for shipping."""

import shutil
from pathlib import Path

import pytest

from listenwell import checkpoint, packing
from listenwell.checkpoint import Checkpoint
from listenwell.evaluation.store import read_card

MADE = {"recipe": {"name": "small"}, "seed": 3, "data": {"source": "shipped"}, "begun": "then", "commit": "abc"}


@pytest.fixture
def runs(tiny_model, tokenizer, score_run, tmp_path):
    """A run of a plain system, and one that has it as a part."""
    plain = Checkpoint("trs", tiny_model("trs"), tokenizer, meta=MADE)
    checkpoint.save(plain, tmp_path / "runs" / "trs" / "best")
    whole = Checkpoint("multi-trs", tiny_model(), tokenizer, meta={**MADE, "seed": 4}, parts={"plain": plain})
    checkpoint.save(whole, tmp_path / "runs" / "multi-trs" / "best")
    for name in ("trs", "multi-trs"):
        score_run(tmp_path / "runs" / name)
    return tmp_path / "runs"


def test_a_run_without_an_evaluation_is_not_packed(runs, tmp_path):
    shutil.rmtree(runs / "trs" / "evaluation")
    with pytest.raises(ValueError, match=r"has no evaluation on the test split .* listenwell evaluate .*/runs/trs"):
        packing.pack(runs / "trs", tmp_path / "zoo" / "trs")
    assert not (tmp_path / "zoo").exists()


def test_only_what_was_packed_is_packed_over(runs, tmp_path):
    best = runs / "trs" / "best"
    weights = (best / "model.safetensors").read_bytes()
    for target in (best, runs / "trs"):
        with pytest.raises(ValueError, match=r"did not write .* name another with TARGET"):
            packing.pack(runs / "trs", target)
    assert (best / "model.safetensors").read_bytes() == weights


def test_what_lies_beside_a_packed_system_stays_there(runs, score_run, tmp_path):
    place = packing.pack(runs / "trs", tmp_path / "zoo" / "trs")
    score_run(place)
    packing.pack(place, place)
    assert (place / "evaluation" / "test" / "scores.json").is_file()
    assert [entry.name for entry in place.parent.iterdir()] == ["trs"]


def test_the_card_tells_the_corpus_of_its_numbers(runs, tmp_path):
    place = packing.pack(runs / "trs", tmp_path / "zoo" / "trs")
    assert read_card(place, "trs", "test").about["data"] == "shipped"


def test_what_ships_has_a_card_and_its_parts(runs, tmp_path):
    place = packing.pack(runs / "multi-trs", tmp_path / "zoo" / "multi-trs")
    assert "seed 4" in (place / "CARD.md").read_text()
    assert set(checkpoint.load(place).parts) == {"plain"}
    assert (place / "parts" / "plain" / "model.safetensors").is_file()


def test_the_numbers_on_the_card_say_what_they_were_computed_on(runs, tmp_path):
    elsewhere, target = tmp_path / "elsewhere", tmp_path / "zoo" / "trs"
    with pytest.raises(ValueError, match=r"elsewhere/scores\.json is not there"):
        packing.pack(runs / "trs", target, elsewhere)
    elsewhere.mkdir()
    about = {"split": "test", "drawn": "256 of 5,257, seed 0", "decoding": "greedy+max40"}
    score = {"name": "bleu-4", "value": 2.345, "unit": "", "signature": "bleu"}
    checkpoint.write_json(elsewhere / "scores.json", {"about": about, "scores": [score]})
    place = packing.pack(runs / "trs", target, elsewhere)
    assert "| test, 256 of 5,257, seed 0 | greedy+max40 |" in (place / "CARD.md").read_text()
    assert read_card(place, "trs", "test").about["drawn"] == "256 of 5,257, seed 0"
    checkpoint.write_json(elsewhere / "scores.json", {"about": {**about, "split": "valid"}, "scores": [score]})
    with pytest.raises(ValueError, match="is of the split valid: a card has scores on test"):
        packing.pack(runs / "trs", target, elsewhere)


def test_what_is_packed_can_get_another_card_and_keeps_its_weights(runs, tmp_path):
    place = packing.pack(runs / "trs", tmp_path / "zoo" / "trs")
    assert "Scored in full precision, before packing" in (place / "CARD.md").read_text()
    weights, scored = (place / "model.safetensors").read_bytes(), tmp_path / "scored"
    scored.mkdir()
    score = {"name": "bleu-4", "value": 2.0, "unit": "", "signature": "bleu"}
    checkpoint.write_json(scored / "scores.json", {"about": {"split": "test"}, "scores": [score]})
    packing.pack(place, place, scored)
    assert "Scored in full precision, as packed" in (place / "CARD.md").read_text()
    assert "| bleu-4 | 2.00 |" in (place / "CARD.md").read_text()
    assert (place / "model.safetensors").read_bytes() == weights


def test_a_part_that_ships_by_itself_does_not_ship_twice(runs, tmp_path):
    packing.pack(runs / "trs", tmp_path / "zoo" / "trs")
    place = packing.pack(runs / "multi-trs", tmp_path / "zoo" / "multi-trs")
    assert not (place / "parts" / "plain").exists()
    assert checkpoint.load(place).parts["plain"].meta["seed"] == 3


def test_another_training_of_the_part_is_no_stand_in(runs, tiny_model, tokenizer, tmp_path):
    checkpoint.save(Checkpoint("trs", tiny_model("trs"), tokenizer, meta={**MADE, "seed": 9}), tmp_path / "zoo" / "trs")
    place = packing.pack(runs / "multi-trs", tmp_path / "zoo" / "multi-trs")
    assert checkpoint.load(place).parts["plain"].meta["seed"] == 3


def licence(place):
    card = " ".join((place / "CARD.md").read_text().split())
    return card.split("the code is MIT. ")[1].split(" ## Scores")[0]


@pytest.fixture
def packed(score_run):
    """Pack a checkpoint as a run that was evaluated."""

    def pack(ckpt, folder):
        checkpoint.save(ckpt, folder / "run" / "best")
        score_run(folder / "run")
        return packing.pack(folder / "run", folder / "zoo" / ckpt.name)

    return pack


def test_the_card_names_all_that_the_weights_learned_from(tiny_model, tokenizer, packed, tmp_path):
    stages = [{"streams": {"train": {"source": ""}, "more": {"source": "edos"}}}]
    meta = {**MADE, "recipe": {"name": "small", "stages": stages}, "data": {"source": "empathetic-dialogues"}}
    meta["start"] = {"name": "runs/first", "hash": "0", "data": ["xdailydialog", "emotionlines"]}
    ckpt = Checkpoint("trs", tiny_model("trs"), tokenizer, meta=meta)
    assert checkpoint.learned_from(meta) == ["xdailydialog", "emotionlines", "empathetic-dialogues", "edos"]
    place = packed(ckpt, tmp_path)
    card = (place / "CARD.md").read_text()
    assert "empathetic-dialogues, after xdailydialog and emotionlines (first), 0 examples" in card
    assert licence(place) == (
        "The weights were trained on XDailyDialog (CC BY-NC-SA 4.0), EmotionLines (research use only), "
        "EmpatheticDialogues (CC BY-NC 4.0) and EDOS (CC BY 4.0): for non-commercial research."
    )


def test_a_corpus_read_alone_and_one_of_one_s_own(tiny_model, tokenizer, packed, tmp_path):
    for source, notice in {
        "empathetic-dialogues": "EmpatheticDialogues (CC BY-NC 4.0): for non-commercial use.",
        "shipped": "the corpus that listenwell wrote itself (MIT).",
        "/home/me/mine.jsonl": "mine.jsonl (under its own licence).",
    }.items():
        ckpt = Checkpoint("trs", tiny_model("trs"), tokenizer, meta={**MADE, "data": {"source": source}})
        assert licence(packed(ckpt, tmp_path)) == f"The weights were trained on {notice}"


def test_the_card_names_the_pretrained_weights_inside_and_below(
    tiny_classifier, tiny_model, tokenizer, packed, tmp_path
):
    whole, upper = tiny_classifier(), tiny_classifier(upper=1)
    whole.meta = {**MADE, "data": {"source": "empathetic-intents"}}
    upper.meta = {**MADE, "data": {"source": "goemotions"}}
    name = Path(whole.model.config.backbone).name
    above = f"They lie above those of {name} (under its own licence)."
    assert licence(packed(upper, tmp_path)) == f"The weights were trained on GoEmotions (Apache 2.0). {above}"
    ckpt = Checkpoint("meed2", tiny_model("meed2"), tokenizer, meta=MADE, parts={"labeller": whole})
    assert licence(packed(ckpt, tmp_path)).endswith(
        " (MIT). Those of the labeller were trained on EmpatheticDialogues (CC BY-NC 4.0): for non-commercial use. "
        f"They start from {name} (under its own licence)."
    )
    for backbone, given in {"minilm": "all-MiniLM-L6-v2", "smollm2": "SmolLM2-135M-Instruct"}.items():
        assert packing.BACKBONES[backbone] == (given, "Apache 2.0")


def test_every_corpus_has_its_licence_on_a_card_as_in_the_docs():
    docs = (Path(__file__).parents[1] / "docs" / "DATA.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")] for line in docs.splitlines() if line.startswith("| `")]
    given = {row[1].strip("`"): row[5] for row in rows}
    given["empathetic-intents"] = given["empathetic-dialogues"]  # as that, it says
    assert {name: licence.removesuffix(" only") for name, (_, licence) in packing.LICENCES.items()} == given


def test_what_is_too_large_to_ship_leaves_what_was_there(runs, tmp_path, monkeypatch):
    place = packing.pack(runs / "trs", tmp_path / "zoo" / "trs")
    before = (place / "meta.json").read_text()
    checkpoint.write_json(runs / "trs" / "best" / "meta.json", {**MADE, "seed": 5})
    monkeypatch.setattr(packing, "MOST_BYTES", 1000)
    for target in (place, tmp_path / "zoo" / "new"):
        with pytest.raises(
            ValueError, match=rf"{target}/\S+ would have [\d,]+ bytes; a shipped file has at most 1,000"
        ):
            packing.pack(runs / "trs", target)
    assert (place / "meta.json").read_text() == before
    assert [entry.name for entry in (tmp_path / "zoo").iterdir()] == ["trs"]


def test_the_card_tells_the_language_and_labels_that_a_system_learned(tiny_model, tokenizer, packed, tmp_path):
    meta = {**MADE, "data": {"source": "smp2020-ewect"}, "languages": ["zh"]}
    card = (packed(Checkpoint("multi-trs", tiny_model(emotions="smp"), tokenizer, meta=meta), tmp_path)) / "CARD.md"
    assert "it learned from short Chinese conversations" in card.read_text()
    assert "- **Labels:** smp: happy, angry, sad, fear, surprise, neutral." in card.read_text()
