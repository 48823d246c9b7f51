"""The HTML report is self-contained, accessible, and safe against markup in its texts."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

from test_evaluate import MIXED, SAID, STOCK, FakeSystem, parrot, written

from listenwell.evaluation import html_report as pages
from listenwell.evaluation.compare import Comparison, compare
from listenwell.evaluation.store import read_all

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{samples}} <!--<script> \u2028 | `x`"


class Reader(HTMLParser):
    """Collects start tags with their attributes and the text of scripts, and checks that tags close in order."""

    VOID = frozenset({"meta", "input", "br", "link", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def parsed(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.open
    return reader


def test_the_page_is_whole_and_asks_for_nothing_from_outside(comparison: Comparison):
    text = pages.page(comparison)
    reader = parsed(text)
    assert not any("src" in attributes for _, attributes in reader.tags)
    assert all(link["href"].startswith("#note-") for link in reader.named("a"))
    assert not reader.named("link")
    assert "http://" not in text
    assert "https://" not in text
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {link["href"][1:] for link in reader.named("a")} <= set(ids)


def test_every_table_of_the_page_has_a_caption_and_scoped_heads(comparison: Comparison):
    reader = parsed(pages.page(comparison))
    tables = reader.named("table")
    assert len(tables) == len(reader.named("caption")) == 3
    assert all(head.get("scope") in ("col", "row", "rowgroup") for head in reader.named("th"))
    assert len(reader.named("details")) == 3
    assert {"viewport", "color-scheme"} <= {meta.get("name") for meta in reader.named("meta")}


def test_text_from_outside_cannot_become_markup_or_script(tmp_path: Path):
    clean = parsed(pages.page(compare(read_all([str(written(tmp_path, parrot("clean")))]))))
    evil = FakeSystem("<img src=x onerror=alert(1)>&", [EVIL] * len(SAID), [EVIL] * len(SAID))
    place = written(tmp_path, evil)
    comparison = compare(read_all([str(place)]), papers=[])
    text = pages.page(comparison)
    reader = parsed(text)
    assert [tag for tag, _ in reader.tags].count("img") == 0
    assert len(reader.scripts) == len(clean.scripts) == 2
    assert reader.scripts[1] == clean.scripts[1]
    data = json.loads(reader.scripts[0])
    assert data["items"][0]["replies"][0][0] == EVIL
    assert data["systems"] == ["<img src=x onerror=alert(1)>&"]
    assert not set("<>&\u2028\u2029") & set(reader.scripts[0])
    assert "innerHTML" not in text


def test_only_the_page_s_own_script_and_style_may_run(comparison: Comparison):
    text = pages.page(comparison)
    (policy,) = [meta["content"] for meta in parsed(text).named("meta") if "http-equiv" in meta]
    for tag in ("script", "style"):
        inside = text.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not any("style" in attributes or "onclick" in attributes for _, attributes in parsed(text).tags)


def test_samples_are_drawn_evenly_over_the_emotions_and_always_the_same():
    records = [
        {"gold emotion": name} for name, number in (("sad", 50), ("joyful", 30), ("afraid", 4)) for _ in range(number)
    ]
    chosen = pages.draw(records, 20)
    assert chosen == sorted(set(chosen))
    assert Counter(records[index]["gold emotion"] for index in chosen) == {"sad": 8, "joyful": 8, "afraid": 4}
    assert pages.draw(records, 20) == chosen != pages.draw(records, 20, seed=1)
    assert pages.draw(records, 500) == list(range(84))
    assert pages.draw(records, 0) == []


def test_samples_hold_the_context_the_reference_and_every_system_s_reply(comparison: Comparison):
    data = pages.sample_data(comparison, 3)
    assert len(data["items"]) == 3
    item = data["items"][0]
    index = int(item["id"][1])
    said, reply, emotion = SAID[index]
    assert (item["context"], item["reference"], item["emotion"]) == ([said], reply, emotion)
    assert [text for text, _, _ in item["replies"]] == [STOCK[index], MIXED[index], reply]
    assert item["replies"][0][1] is None
    assert item["replies"][2][1] == emotion
