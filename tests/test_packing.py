"""What is made ready to ship."""

import pytest

from listenwell import checkpoint, packing
from listenwell.checkpoint import Checkpoint

MADE = {"recipe": {"name": "small"}, "seed": 3, "data": {"source": "shipped"}, "begun": "then", "commit": "abc"}


@pytest.fixture
def runs(tiny_model, tokenizer, tmp_path):
    """A run of a plain system, and one that has it as a part."""
    plain = Checkpoint("trs", tiny_model("trs"), tokenizer, meta=MADE)
    checkpoint.save(plain, tmp_path / "runs" / "trs" / "best")
    whole = Checkpoint("multi-trs", tiny_model(), tokenizer, meta={**MADE, "seed": 4}, parts={"plain": plain})
    checkpoint.save(whole, tmp_path / "runs" / "multi-trs" / "best")
    return tmp_path / "runs"


def test_what_ships_has_a_card_and_its_parts(runs, tmp_path):
    place = packing.pack(runs / "multi-trs", tmp_path / "zoo" / "multi-trs")
    assert "seed 4" in (place / "CARD.md").read_text()
    assert set(checkpoint.load(place).parts) == {"plain"}
    assert (place / "parts" / "plain" / "model.safetensors").is_file()


def test_a_part_that_ships_by_itself_does_not_ship_twice(runs, tmp_path):
    packing.pack(runs / "trs", tmp_path / "zoo" / "trs")
    place = packing.pack(runs / "multi-trs", tmp_path / "zoo" / "multi-trs")
    assert not (place / "parts" / "plain").exists()
    assert checkpoint.load(place).parts["plain"].meta["seed"] == 3


def test_another_training_of_the_part_is_no_stand_in(runs, tiny_model, tokenizer, tmp_path):
    checkpoint.save(Checkpoint("trs", tiny_model("trs"), tokenizer, meta={**MADE, "seed": 9}), tmp_path / "zoo" / "trs")
    place = packing.pack(runs / "multi-trs", tmp_path / "zoo" / "multi-trs")
    assert checkpoint.load(place).parts["plain"].meta["seed"] == 3
