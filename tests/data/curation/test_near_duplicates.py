"""Near duplicates share most of their word trigrams, in any order."""

import random

import numpy as np
import pytest
from made_subtitles import lines

from listenwell.data.curation.near_duplicates import (
    BANDS,
    NearDuplicates,
    RowStore,
    band_keys,
    jaccard,
    plain_words,
    shingles,
)


def marks_of(text: str) -> np.ndarray:
    return shingles(plain_words(text))


def find(folder, texts: dict[str, str], **options):
    """Which records are dropped as duplicates of which others. They are added in order of their ids, in two blocks."""
    index = NearDuplicates(folder, **options)
    ids = sorted(texts)
    for block in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
        marks = [marks_of(texts[name]) for name in block]
        keys = np.array([band_keys(one) for one in marks], dtype="<u8").reshape(-1, BANDS)
        index.add(block, [one.tobytes() for one in marks], keys)
    index.find()
    found = {match.id: (match.match, match.similarity) for match in index.matches(0, len(ids))}
    assert index.remaining() == len(ids) - len(found)
    index.close()
    return found


def test_words_are_compared_without_case_and_marks_and_chinese_by_characters():
    assert plain_words("Don't GO, now!") == ["dont", "go", "now"]
    assert plain_words("你好 ok") == ["你", "好", "ok"]


def test_shingles_are_the_runs_of_three_words():
    assert len(marks_of("a b c d")) == 2
    assert len(marks_of("a b c a b c")) == 3
    assert len(marks_of("a b")) == len(marks_of("a")) == 1
    assert not len(shingles([]))
    assert not np.array_equal(marks_of("a b c"), marks_of("c b a"))


def test_the_hashes_are_the_same_everywhere_and_for_ever():
    assert marks_of("I lost my job").tolist() == [742651904, 1220077908]
    assert int(band_keys(marks_of("I lost my job"))[0]) == 4787765629750785408


@pytest.fixture
def texts():
    rng = random.Random(3)
    return {f"d{number:03}": " ".join(lines(rng)) for number in range(60)}


def test_a_copy_and_a_near_copy_go_and_name_the_first(tmp_path, texts):
    first = texts["d010"]
    texts |= {"d500": first.upper() + "!!", "d600": first + " Thanks a lot", "a": texts["d020"]}
    found = find(tmp_path, texts)
    assert found["d500"] == ("d010", 1.0)
    assert found["d600"][0] == "d010"
    assert 0.8 < found["d600"][1] < 1
    assert found["d020"] == ("a", 1.0)  # the smallest id stays
    assert len(found) == 3


def test_what_is_found_is_what_comparing_all_pairs_finds(tmp_path, texts):
    rng = random.Random(5)
    for number in range(60):
        words = texts[f"d{number:03}"].split()
        for _ in range(rng.randrange(4)):
            words[rng.randrange(len(words))] = "changed"
        texts[f"e{number:03}"] = " ".join(words)
    marks = {name: marks_of(text) for name, text in texts.items()}
    near = {
        (first, second)
        for first in marks
        for second in marks
        if first < second and jaccard(marks[first], marks[second]) >= 0.8
    }
    found = find(tmp_path, texts)
    assert {(match, name) for name, (match, _) in found.items()} == near
    assert near


def test_one_partition_or_many_give_the_same(tmp_path, texts):
    texts |= {f"x{name}": text + " indeed" for name, text in texts.items()}
    assert find(tmp_path / "one", texts, partitions=1) == find(tmp_path / "many", texts, partitions=97)


def test_near_duplicates_of_near_duplicates_are_one_group(tmp_path):
    words = [f"w{number}" for number in range(60)]
    chain = {f"d{step}": " ".join([*words, *(f"more{step}{index}" for index in range(4 * step))]) for step in range(4)}
    found = find(tmp_path, chain)
    assert {match for match, _ in found.values()} <= {"d0"}


def test_a_store_gives_back_what_was_put_in(tmp_path):
    store = RowStore(tmp_path / "rows")
    entries = [b"first", b"", b"third entry", b"x"]
    for entry in entries:
        store.append(entry)
    store.flush()
    assert [store[row] for row in (3, 0, 2, 1)] == [entries[row] for row in (3, 0, 2, 1)]
    store.close()
