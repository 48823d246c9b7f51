from listenwell.data.dialogue import Dialogue, Turn
from listenwell.data.sources.leakage import check


def talk(*texts: str) -> Dialogue:
    return Dialogue("d", tuple(Turn(("speaker", "listener")[i % 2], text) for i, text in enumerate(texts)))


def test_duplicates_are_found_within_and_across_splits():
    splits = {
        "train": [talk("a", "you must feel so very proud"), talk("b", "oh no"), talk("b", "oh  no")],
        "valid": [talk("c", "You must feel so very proud"), talk("d", "what happened to you then ?")],
        "test": [talk("b", "oh no")],
    }
    actual = check(splits, lambda name: iter(splits[name]))
    assert actual.within == {"train": 1, "valid": 0, "test": 0}
    across = {(pair.first, pair.second): (pair.dialogues, pair.replies, pair.replies_of) for pair in actual.across}
    # "oh no" is too short to count as a duplicate reply, but the whole dialogue counts.
    assert across == {("train", "valid"): (0, 1, 2), ("train", "test"): (1, 0, 0), ("valid", "test"): (0, 0, 0)}
