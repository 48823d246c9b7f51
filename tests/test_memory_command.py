"""`listenwell memory`: slots by emotion, their descriptions, and their training queries if the corpus is there."""

import json

import pytest
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.cli import main
from listenwell.contract import WordPrior
from listenwell.data.batching import collate
from listenwell.data.dialogue import examples
from listenwell.data.sources import jsonl
from listenwell.models import build
from listenwell.models.strategy_memory import STRATEGY


@pytest.fixture
def trained(tokenizer, encoded, tiny_model, small_corpus, tmp_path):
    """A system whose memory was written from the corpus, saved with a recipe that names the corpus."""

    def classifier(labels):
        sizes = {"width": 12, "heads": 2, "layers": 1, "feed_forward": 16}
        model = build("text-encoder", {**sizes, "labels": labels}, tokenizer.vocabulary)
        model.initialise(WordPrior(torch.ones(len(tokenizer))))
        return Checkpoint("text-encoder", model.eval(), tokenizer)

    def make(write=True, corpus=small_corpus):
        model = tiny_model("strategy-memory", slots=6, queries_per_slot=2)
        parts = {"detector": classifier("nlpcc"), "evaluator": classifier("polarity")}
        model.attach(parts)
        if write:
            with torch.no_grad():
                model.on_epoch_start(STRATEGY, 0, lambda: [collate(encoded, range(len(encoded)), tokenizer.pad)])
        stream = {"source": str(corpus), "split": "valid", "examples": 4}
        recipe = {"name": "mine", "model": {"name": "strategy-memory"}, "data": {"source": str(small_corpus)}}
        recipe["stages"] = [{"name": STRATEGY, "streams": {"train": stream}, "epochs": 1}]
        place = tmp_path / f"system-{write}"
        checkpoint.save(Checkpoint("strategy-memory", model, tokenizer, parts=parts, meta={"recipe": recipe}), place)
        return str(place)

    return make


def test_slots_are_shown_with_the_queries_that_they_stand_for(trained, small_corpus, capsys):
    main(["memory", trained(), "--slots", "2", "--json"])
    views = json.loads(capsys.readouterr().out)
    assert views
    assert all(len(view["slots"]) <= 2 <= 6 and view["filled"] >= view["read"] for view in views)
    reads = [slot["reads"] for slot in views[0]["slots"]]
    assert reads == sorted(reads, reverse=True)
    queries = {item.context[-1].text for talk in jsonl.read(small_corpus, "valid") for item in examples(talk)}
    shown = [text for view in views for slot in view["slots"] for text in slot["queries"]]
    assert shown
    assert set(shown) <= queries
    main(["memory", trained()])
    assert "nearest training queries" in capsys.readouterr().out


def test_one_emotion_may_be_chosen_and_a_wrong_one_is_told(trained, capsys):
    place = trained()
    main(["memory", place, "--json"])
    emotion = json.loads(capsys.readouterr().out)[0]["emotion"]
    main(["memory", place, "--emotion", emotion, "--json"])
    assert [view["emotion"] for view in json.loads(capsys.readouterr().out)] == [emotion]
    with pytest.raises(SystemExit, match="unknown emotion with a memory 'joyy'"):
        main(["memory", place, "--emotion", "joyy"])


def test_without_the_corpus_the_words_remain(trained, tmp_path, capsys):
    main(["memory", trained(corpus=tmp_path / "gone.jsonl")])
    shown = capsys.readouterr().out
    assert "words" in shown
    assert "training corpus is not available" in shown


def test_a_system_without_a_memory_is_refused(trained):
    with pytest.raises(SystemExit, match="multi-trs has no strategy memory; strategy-memory has one"):
        main(["memory", "multi-trs"])
    with pytest.raises(SystemExit, match="its memory is empty: phase 2, which writes it, has not begun"):
        main(["memory", trained(write=False)])
