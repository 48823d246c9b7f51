"""What is measured in replies: similarity to the references, labels, positivity; and on which items."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_evaluate import SAID, STOCK, Chooser, FakeSystem, made_items, parrot, quiet, written

from listenwell import checkpoint
from listenwell.classifiers.empathy import EmpathyClassifier
from listenwell.classifiers.label_cache import fingerprint
from listenwell.classifiers.labeller import Labeller
from listenwell.classifiers.sentence_encoder import SentenceEncoder
from listenwell.cli import main
from listenwell.data.dialogue import Example, Turn
from listenwell.data.sources import jsonl
from listenwell.evaluation import material as module
from listenwell.evaluation.compare import compare, digits
from listenwell.evaluation.evaluate import draw_items, evaluate, write
from listenwell.evaluation.store import folder_name, read, read_all
from listenwell.labels.empathy import MECHANISMS
from listenwell.labels.taxonomy import EMOTIONS
from listenwell.metrics import registry
from listenwell.metrics.material import UnavailableError


@pytest.fixture(autouse=True)
def tiny_encoder(tiny_backbone, monkeypatch):
    encoder = SentenceEncoder(str(tiny_backbone))
    monkeypatch.setattr(module, "sentence_encoder", lambda: encoder)
    return encoder


def measured(system, items=None, **readers):
    about = {"data": "made", "split": "test"}
    return evaluate(system, items or made_items(), about, quiet, resamples=20, **readers)


def test_replies_near_their_references_have_a_high_similarity(tiny_encoder):
    assert measured(parrot())["ses"].value == pytest.approx(1)
    scores = measured(FakeSystem("plain", STOCK))["ses"]
    references = tiny_encoder.embed([reply for _, reply, _ in SAID])
    np.testing.assert_allclose(scores.items, references @ tiny_encoder.embed(STOCK[:1])[0], atol=1e-5)
    assert scores.signature["encoder"] == tiny_encoder.name


def test_without_the_encoder_the_similarity_is_absent_and_one_line_says_so(monkeypatch, capsys):
    def missing():
        raise FileNotFoundError("backbone 'minilm' not found")

    monkeypatch.setattr(module, "sentence_encoder", missing)
    assert not any(score.name == "ses" for score in measured(parrot()).scores)
    said = capsys.readouterr().err
    assert said == "ses, the similarity of sentence embeddings, is left out: backbone 'minilm' not found\n"


def test_a_judge_and_vader_say_how_positive_replies_are_and_the_gain(tiny_classifier):
    pytest.importorskip("vaderSentiment")
    judge = Labeller(tiny_classifier(labels="polarity"), "polarity")
    scores = measured(parrot(), judge=judge)
    chances = {
        text: dict(zip(judge.names, judge.distribution([text])[0], strict=True)) for pair in SAID for text in pair[:2]
    }
    lean = {text: row["positive"] - row["negative"] for text, row in chances.items()}
    np.testing.assert_allclose(scores["positivity"].items, [lean[reply] for _, reply, _ in SAID], atol=1e-5)
    gains = [lean[reply] - lean[said] for said, reply, _ in SAID]
    np.testing.assert_allclose(scores["positivity-gain"].items, gains, atol=1e-5)
    assert scores["positivity"].signature["by"].startswith("emotion-intent ")
    assert scores["vader"].items[2] > 0.5 > 0 > scores["vader"].items[1]
    assert scores["vader-gain"].signature["by"] == "vader3.3.2"
    assert "positivity" not in {score.name for score in measured(parrot()).scores}


def test_where_vader_is_not_installed_it_is_absent(monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    assert not any("vader" in score.name for score in measured(parrot()).scores)


def test_a_labeller_reads_replies_and_references(tiny_classifier, tmp_path):
    labeller = Labeller(tiny_classifier())
    scores = measured(FakeSystem("plain", STOCK), labeller=labeller)
    (stock,) = labeller.label(STOCK[:1])
    assert scores.labels["replies"] == {stock.name: len(SAID)}
    assert scores.labels["references"].total() == len(SAID)
    assert scores["reply-emotion@1"].signature["by"] == "emotion-intent"
    assert len(scores["reply-emotion@1"].signature["weights"]) == 8
    people, same = scores["reference-emotion@1"], measured(parrot(), labeller=labeller)
    assert (people.signature["of"], people.signature["by"]) == ("reference", "emotion-intent")
    chances = labeller.distribution([reply for _, reply, _ in SAID])[:, :32]
    right = [EMOTIONS[index] == emotion for index, (_, _, emotion) in zip(chances.argmax(1), SAID, strict=True)]
    assert people.value == pytest.approx(100 * np.mean(right))
    assert same["reply-emotion@1"].value == same["reference-emotion@1"].value == people.value
    write(scores, tmp_path / "test")
    assert (tmp_path / "test" / "labels.png").stat().st_size > 1000
    assert json.loads((tmp_path / "test" / "scores.json").read_text())["labels"]["replies"] == {stock.name: 6}
    bare = [Example(item.id, item.context, item.reply) for item in made_items()]
    other = measured(parrot(), bare, labeller=labeller)
    assert not any("-emotion@" in score.name for score in other.scores), "no dialogue has an emotion"
    assert other.labels


def test_a_classifier_of_empathy_reads_replies_and_references_after_what_they_answer(tiny_epitome):
    reader = EmpathyClassifier(tiny_epitome())
    names = [f"{side}{name}" for name in MECHANISMS for side in ("", "reference-")]
    found = measured(FakeSystem("plain", STOCK), empathy=lambda: reader, metrics=names)
    said = reader.expected([(post, STOCK[0]) for post, _, _ in SAID])
    people = reader.expected([(post, reply) for post, reply, _ in SAID])
    for column, name in enumerate(MECHANISMS):
        np.testing.assert_allclose(found[name].items, said[:, column], atol=1e-5)
        assert found[f"reference-{name}"].value == pytest.approx(people[:, column].mean())
        assert found[name].low < found[name].value < found[name].high
        signature = found[name].signature
        assert (signature["of"], signature["level"], signature["gibberish"]) == ("reply", "expected", "none")
        assert signature["by"] == f"epitome {fingerprint(reader.checkpoint)[:8]}"
    same = measured(parrot(), empathy=lambda: reader, metrics=names)
    assert same["explorations"].value == pytest.approx(found["reference-explorations"].value, rel=1e-6)


def test_a_reply_that_is_not_language_shows_no_empathy(tiny_epitome):
    reader = EmpathyClassifier(tiny_epitome())
    found = measured(FakeSystem("noise", ["it it it it", *STOCK[1:]]), empathy=lambda: reader, metrics=["explorations"])
    assert found["explorations"].items[0] == 0 < found["explorations"].items[1]


def test_the_classifier_of_empathy_is_loaded_only_for_those_who_ask(tiny_epitome):
    loads = []

    def load():
        loads.append(1)
        return EmpathyClassifier(tiny_epitome())

    measured(parrot(), empathy=load)
    assert not loads, "it takes its time, and is computed by name"
    measured(parrot(), metrics=["explorations", "interpretations"], empathy=load)
    assert len(loads) == 1
    chinese = [replace(item, language="zh") for item in made_items()]
    left = measured(parrot(), chinese, metrics=["explorations"], empathy=load).about["left out"]
    assert left == {"explorations": "made for English, and the items are in Chinese"}
    assert len(loads) == 1, "other languages do not load it"


def test_the_labels_that_a_system_chose_are_counted_beside_those_found(tiny_classifier, tmp_path):
    system = Chooser(["consoling"] * 4 + ["wishing"] * 2)
    alone = measured(system)
    assert alone.labels == {"chosen": {"consoling": 4, "wishing": 2}}
    write(alone, tmp_path / "test")
    assert (tmp_path / "test" / "labels.png").stat().st_size > 1000
    assert list(measured(system, labeller=Labeller(tiny_classifier())).labels) == ["chosen", "replies", "references"]
    assert measured(parrot()).labels == {}


def test_drawn_items_are_the_same_for_all_in_order_and_not_the_first():
    items = [Example(str(index), (Turn("speaker", "x"),)) for index in range(200)]
    drawn = [int(item.id) for item in draw_items(items, 50)]
    assert drawn == sorted(set(drawn)) == [int(item.id) for item in draw_items(items, 50)]
    assert len(drawn) == 50
    assert max(drawn) > 150
    assert draw_items(items[:10], 50) == items[:10]


@pytest.mark.parametrize(
    ("given", "how", "expected"),
    [
        (("test",), {}, "test"),
        (("test", "edos"), {}, "edos-test"),
        (("valid", "edos", "mturk"), {}, "edos-mturk-valid"),
        (("test", "/some/where/mine.jsonl.gz"), {}, "mine-test"),
        (("test", "xdailydialog+emotionlines"), {}, "xdailydialog+emotionlines-test"),
        (("test", "edos"), {"items": 200}, "edos-test-200"),
        (("test",), {"limit": 20}, "test-first20"),
        (("test",), {"decoding": "greedy+block3+max40"}, "test-greedy+block3+max40"),
        (("test", "edos"), {"items": 200, "decoding": "beam32+lp1+max40"}, "edos-test-200-beam32+lp1+max40"),
    ],
)
def test_an_evaluation_s_folder_is_named_by_all_that_was_named(given, how, expected):
    assert folder_name(*given, **how) == expected


@pytest.fixture
def runs(tiny_model, tokenizer, tmp_path):
    """Two runs with tiny systems."""
    for name in ("one", "two"):
        ckpt = checkpoint.Checkpoint("multi-trs", tiny_model(), tokenizer)
        ckpt.decoding = replace(ckpt.decoding, method="greedy", max_length=4)
        checkpoint.save(ckpt, tmp_path / name / "best")
    return [str(tmp_path / name) for name in ("one", "two")]


def test_another_domain_has_the_same_drawn_items_and_a_folder_of_its_own(runs, small_corpus, tmp_path, capsys):
    data = tmp_path / "corpus.jsonl"
    jsonl.write(jsonl.read(small_corpus), data)
    for run in runs:
        main(["evaluate", run, "--data", str(data), "--split", "all", "--items", "7", "--resamples", "10", "--json"])
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])["about"]
    assert printed["items"] == 7
    assert printed["drawn"].startswith("7 of ")
    assert printed["drawn"].endswith(", seed 0")
    systems = read_all(runs, "all", str(data))
    assert [one.name for one in systems] == ["one", "two"]
    assert [r["id"] for r in systems[0].records] == [r["id"] for r in systems[1].records]
    main(["compare", *runs, "--split", "all", "--data", str(data)])
    assert "7 items" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"test/scores\.json is missing; .* there is evaluation/corpus-all-7"):
        main(["compare", *runs])
    with pytest.raises(SystemExit, match="--limit takes the first items and --items draws some; give one of them"):
        main(["evaluate", runs[0], "--data", str(data), "--split", "all", "--items", "7", "--limit", "3"])


def test_no_evaluation_is_written_over_by_another_kind(runs, small_corpus, tmp_path, capsys):
    data = tmp_path / "corpus.jsonl"
    jsonl.write(jsonl.read(small_corpus), data)
    words = ["evaluate", runs[0], "--data", str(data), "--split", "valid", "--resamples", "0", "--json"]
    kinds = {
        "corpus-valid": [],
        "corpus-valid-3": ["--items", "3"],
        "corpus-valid-5": ["--items", "5"],
        "corpus-valid-first2": ["--limit", "2"],
        "corpus-valid-greedy+max3": ["--decoding.max_length", "3"],
        "corpus-valid-3-greedy+max3": ["--items", "3", "--decoding.max_length", "3"],
    }
    for options in ([*words, *kind] for kind in kinds.values()):
        main(options)
    main([*words, "--decoding.max_length", "4"])  # which is the system's own
    capsys.readouterr()
    inside = Path(runs[0]) / "evaluation"
    assert sorted(place.name for place in inside.iterdir()) == sorted(kinds)
    assert read(runs[0], "valid", str(data)).place.name == "corpus-valid"
    shutil.rmtree(inside / "corpus-valid")
    assert read(runs[0], "valid", str(data)).place.name == "corpus-valid-5"
    several = [str(inside / name) for name in ("corpus-valid-3", "corpus-valid-3-greedy+max3")]
    main(["compare", *several, "--scores", "length", "--format", "json"])
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["systems"]] == ["one", "one, greedy+max3"]


def test_the_command_takes_readers_by_folder(runs, small_corpus, tiny_classifier, tmp_path, capsys):
    checkpoint.save(tiny_classifier(), tmp_path / "labeller")
    checkpoint.save(replace(tiny_classifier(labels="polarity"), name="polarity"), tmp_path / "judge")
    options = ["--judge", str(tmp_path / "judge"), "--labeller", str(tmp_path / "labeller"), "--resamples", "0"]
    data = ["--data", str(small_corpus), "--split", "valid", "--out", str(tmp_path / "out")]
    main(["evaluate", runs[0], *data, *options])
    out = capsys.readouterr().out
    assert "scores.json, replies.jsonl, labels.png" in out
    scores = {s["name"]: s for s in json.loads((tmp_path / "out" / "scores.json").read_text())["scores"]}
    assert {"ses", "positivity", "positivity-gain", "reply-emotion@1"} <= set(scores)
    with pytest.raises(SystemExit, match="writes no replies; leave --items, --judge out"):
        main(["evaluate", str(tmp_path / "labeller"), *data, "--items", "3", "--judge", str(tmp_path / "judge")])
    with pytest.raises(SystemExit, match="labels texts by emotion-intent, where polarity is expected"):
        main(["evaluate", runs[0], *data, "--judge", str(tmp_path / "labeller")])


def test_the_command_judges_empathy_by_folder_and_says_where_it_cannot(
    runs, small_corpus, tiny_epitome, tmp_path, monkeypatch, capsys
):
    checkpoint.save(tiny_epitome(), tmp_path / "epitome")
    words = ["evaluate", runs[0], "--data", str(small_corpus), "--split", "valid", "--resamples", "0", "--json"]
    words += ["--metrics", "explorations,reference-explorations"]
    main([*words, "--empathy", str(tmp_path / "epitome")])
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert [score["name"] for score in scores] == ["explorations", "reference-explorations"]
    with pytest.raises(SystemExit, match="unknown system"):
        main([*words, "--empathy", str(tmp_path / "nothing")])
    with pytest.raises(SystemExit, match="does not judge the empathy of replies; epitome does"):
        main([*words, "--empathy", runs[1]])
    monkeypatch.setattr("listenwell.weights.shipped", dict)
    main(words)
    left = json.loads(capsys.readouterr().out)["about"]["left out"]
    assert left["explorations"] == "epitome: its weights are not installed: pip install listenwell-weights-papers"


def test_a_classifier_that_is_a_part_of_the_system_does_not_measure_it(tiny_epitome, tiny_model, tokenizer, tmp_path):
    from listenwell.commands.evaluate_replies import empathy_loader

    part = tiny_epitome()
    checkpoint.save(part, tmp_path / "epitome")
    whole = checkpoint.Checkpoint("multi-trs", tiny_model(), tokenizer, parts={"empathy": part})
    with pytest.raises(UnavailableError, match="epitome is the empathy that multi-trs itself has"):
        empathy_loader(str(tmp_path / "epitome"), whole)()


def test_the_command_reads_with_what_is_shipped(runs, small_corpus, tiny_classifier, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "cache"))
    checkpoint.save(replace(tiny_classifier(labels="polarity"), name="polarity"), tmp_path / "cache" / "judge")
    main(["evaluate", runs[0], "--data", str(small_corpus), "--split", "valid", "--resamples", "0", "--json"])
    assert "positivity" in {score["name"] for score in json.loads(capsys.readouterr().out)["scores"]}


def test_where_no_classifier_is_at_hand_the_command_reads_with_the_system_s_own(
    small_corpus, tiny_model, tokenizer, tiny_classifier, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("listenwell.weights.shipped", dict)
    part = tiny_classifier()
    ckpt = checkpoint.Checkpoint("meed2", tiny_model("meed2", predictor_layers=1), tokenizer, parts={"labeller": part})
    ckpt.decoding = replace(ckpt.decoding, max_length=4)
    checkpoint.save(ckpt, tmp_path / "run" / "best")
    words = ["--data", str(small_corpus), "--split", "valid", "--resamples", "0", "--out", str(tmp_path / "out")]
    main(["evaluate", str(tmp_path / "run"), *words])
    assert "labels.png" in capsys.readouterr().out
    record = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert list(record["labels"]) == ["chosen", "replies", "references"]
    (score,) = [score for score in record["scores"] if score["name"] == "reply-emotion@1"]
    assert f"weights:{fingerprint(part)[:8]}" in score["signature"]


def test_small_means_are_told_with_three_digits(tmp_path):
    names = [str(written(tmp_path, system)) for system in (FakeSystem("plain", STOCK), parrot("right"))]
    comparison = compare(read_all(names), resamples=50)
    shown = {column.name: comparison.cell(comparison.systems[1], column).value for column in comparison.columns}
    assert shown["ses"] == "1.000"
    assert digits([comparison.systems[0].scores["ses"]]) == 3
    assert shown["length"].count(".") == 1
    assert len(shown["length"].split(".")[1]) == 2


def test_the_command_computes_the_scores_that_are_named_and_says_what_is_left_out(runs, small_corpus, capsys):
    words = ["evaluate", runs[0], "--data", str(small_corpus), "--split", "valid", "--resamples", "0", "--items", "3"]
    main([*words, "--metrics", "bleu-1, label-f1", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert [score["name"] for score in said["scores"]] == ["bleu-1"]
    assert list(said["about"]["left out"]) == ["label-f1"]
    main([*words, "--metrics", "bleu-1,label-f1"])
    assert "left out: label-f1 (" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(SystemExit, match="did you mean"):
        main([*words, "--metrics", "blue-1"])
