"""Threads of posts: one list of texts per line, or all in one array."""

import gzip
import json

import pytest
from made_subtitles import write_threads

from listenwell.data.curation import inputs, manifest
from listenwell.data.curation.engines.local import LocalEngine
from listenwell.data.curation.inputs import Inputs
from listenwell.data.curation.pipeline import Curation, curate
from listenwell.data.sources import find_data
from listenwell.data.sources.cleaning import Cleaner
from listenwell.data.sources.weibo_raw import read as read_weibo

THREADS = [
    ["今天心情怎么样[哈哈]", "还不错！！！", "那就好"],
    ["去吃饭吗", "好啊 http://t.cn/abc", "走吧走吧"],
    ["加我微信 vx: abc12345", "不要"],
    ["今天心情怎么样", "还不错！", "那就好"],
]


def run(*paths, out, **options):
    return curate(Curation(Inputs.named("posts", paths), out, "zh", **options), LocalEngine(1))


def test_a_thread_is_cleaned_and_leads_back_to_its_line(tmp_path):
    content = run(write_threads(tmp_path / "weibo.jsonl", THREADS), out=tmp_path / "out")
    first, second = manifest.read_curated(tmp_path / "out")
    assert [turn.text for turn in first.turns] == ["今天心情怎么样", "还不错！", "那就好"]
    assert (first.id, first.line, first.language, first.source) == ("weibo.jsonl:1", 1, "zh", "posts")
    assert [turn.cues for turn in second.turns] == [(1,), (2,), (3,)]
    assert content["counts"]["dialogues"]["dropped"] == {"duplicate": 1, "fewer than two turns": 1}
    assert content["counts"]["turns"]["dropped"]["contact details (adverts)"] == 1
    sample = (tmp_path / "out" / "dropped-samples.jsonl").read_text(encoding="utf-8")
    assert "abc12345" not in sample  # no contact details are shown


def test_lines_an_array_and_packed_files_give_the_same_texts(tmp_path):
    texts = []
    lines = "\n".join(json.dumps(thread) for thread in THREADS).encode()
    for name, data in {
        "a.jsonl": lines,
        "b.jsonl.gz": gzip.compress(lines),
        "c.json": json.dumps(THREADS).encode(),
    }.items():
        (tmp_path / name).write_bytes(data)
        run(tmp_path / name, out=tmp_path / f"out-{name}")
        dialogues = manifest.read_curated(tmp_path / f"out-{name}")
        texts.append([[turn.text for turn in dialogue.turns] for dialogue in dialogues])
    assert texts[0] == texts[1] == texts[2]


def test_what_is_no_thread_is_dropped_and_shown(tmp_path):
    path = tmp_path / "weibo.jsonl"
    path.write_text('["你好吗朋友", "我很好呀"]\n{"a": 1}\nnot json\n[]\n["x", 5]\n\n', encoding="utf-8")
    content = run(path, out=tmp_path / "out")
    assert content["counts"]["dialogues"] == {"in": 5, "out": 1, "dropped": {"not a list of texts": 4}}
    assert "not json" in (tmp_path / "out" / "dropped-samples.jsonl").read_text(encoding="utf-8")


def test_a_broken_array_is_reported_and_what_came_before_it_kept(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(THREADS[:2], ensure_ascii=False)[:-8], encoding="utf-8")
    content = run(tmp_path / "a.json", out=tmp_path / "out")
    assert content["counts"]["dialogues"]["in"] == 1
    assert "a.json" in (tmp_path / "out" / "problems.jsonl").read_text(encoding="utf-8")


def test_a_long_file_in_pieces_gives_the_same(tmp_path, monkeypatch):
    threads = [[f"第{number}个问题是什么呢", f"答案是{number * 7}吧", "原来如此"] for number in range(300)]
    path = write_threads(tmp_path / "weibo.jsonl", threads)
    whole = run(path, out=tmp_path / "whole")
    monkeypatch.setattr(inputs, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(inputs.line_pieces, "__defaults__", (2000,))
    pieces = run(path, out=tmp_path / "pieces")
    assert len(list(Inputs.named("posts", [path]).chunks())) > 5
    assert pieces["records"]["hash"] == whole["records"]["hash"]
    assert pieces["counts"]["files"] == whole["counts"]["files"] == {"in": 1, "out": 1, "dropped": {}}


@pytest.mark.data
def test_real_threads_come_out_as_data_clean_has_them(tmp_path):
    try:
        folder = find_data("weibo-raw")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")
    content = run(folder, out=tmp_path / "out")
    cleaned = {tuple(turn.text for turn in dialogue.turns) for dialogue in Cleaner().clean(read_weibo(folder))}
    curated = {tuple(turn.text for turn in dialogue.turns) for dialogue in manifest.read_curated(tmp_path / "out")}
    assert curated <= cleaned
    assert (len(cleaned), content["records"]["dialogues"], content["records"]["turns"]) == (1_953, 1_953, 9_930)
