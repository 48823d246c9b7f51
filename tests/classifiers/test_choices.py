"""The chooser's training data: origins, similar replies, malformed files."""

import json

import pytest

from listenwell.classifiers.choices import choices, nearest_replies, read_candidates
from listenwell.cli import main
from listenwell.data.dialogue import Example, Label, Turn
from listenwell.data.sources import jsonl


def item(name, said, reply, emotion="sad"):
    return Example(name, (Turn("speaker", said),), Turn("listener", reply), emotion=Label(emotion))


ITEMS = [
    item("a#1", "my old dog died last night", "I am so sorry."),
    item("a#3", "my old dog died and I miss her", "She was loved."),
    item("b#1", "our dog died in spring", "Dogs are family."),
    item("c#1", "my old dog died too", "Congratulations!", emotion="joyful"),
    item("d#1", "I failed an exam", "You can try again."),
]


def test_the_near_reply_is_of_another_dialogue_of_the_same_emotion():
    assert nearest_replies(ITEMS) == [
        "Dogs are family.", "Dogs are family.", "I am so sorry.", None, "I am so sorry."
    ]  # fmt: skip


def test_each_reply_is_a_dialogue_with_its_origin_and_no_text_comes_twice():
    written = {"a#1": ["I am so sorry!", "What was her name?", "what was her name", ""]}
    found = [dialogue for dialogue in choices(ITEMS, written) if dialogue.id.startswith("a#1")]
    assert [(dialogue.turns[-1].text, dialogue.turns[-1].label.name) for dialogue in found] == [
        ("I am so sorry.", "here"),
        ("Dogs are family.", "elsewhere"),
        ("What was her name?", "written"),
    ]
    assert {dialogue.split for dialogue in choices(ITEMS, {}) if dialogue.id.startswith("a#")} in ({"train"}, {"valid"})


@pytest.mark.parametrize("line", ["no json", '{"id": "a"}', '["a"]', '{"id": "a", "candidates": [1]}'])
def test_a_file_that_generate_did_not_write_is_refused_with_its_line(tmp_path, line):
    file = tmp_path / "replies.jsonl"
    file.write_text(json.dumps({"id": "a", "candidates": [{"text": "hm"}]}) + "\n" + line + "\n")
    with pytest.raises(ValueError, match=r"replies.jsonl line 2: .*listenwell generate"):
        read_candidates(file)


def test_the_command_writes_a_file_that_a_chooser_is_trained_from(tmp_path, small_corpus, capsys):
    items = list(jsonl.read(small_corpus))[:3]
    replies = tmp_path / "replies.jsonl"
    ids = [f"{dialogue.id}#1" for dialogue in items]
    replies.write_text("".join(json.dumps({"id": i, "candidates": [{"text": "Tell me more."}]}) + "\n" for i in ids))
    out = tmp_path / "choices.jsonl"
    assert not main(["data", "choices", str(small_corpus), f"--candidates={replies}", "--most=4", f"--out={out}"])
    origins = [dialogue.turns[-1].label.name for dialogue in jsonl.read(out)]
    assert origins.count("written") == 3
    assert origins.count("here") == 7
    assert "3 written" in " ".join(capsys.readouterr().out.split())
