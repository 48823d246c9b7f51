"""Models that once had their own name and are now an option: weights trained under the old name still work."""

import json

import pytest
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.loading import _what_replies
from listenwell.models import MODELS, RENAMED_MODELS, current_model, earlier_model


@pytest.mark.parametrize(
    "old", [name for name in RENAMED_MODELS if RENAMED_MODELS[name][0] in ("mime", "moel", "meed2")]
)
def test_a_checkpoint_with_the_old_name_loads_and_scores_the_same(old, tiny_model, tokenizer, encoded, tmp_path):
    from listenwell.data.batching import collate

    name, choices = RENAMED_MODELS[old]
    model = tiny_model(name, **choices)
    checkpoint.save(Checkpoint(name, model, tokenizer), tmp_path / "best")
    config = json.loads((tmp_path / "best" / "config.json").read_text())
    config["model"]["name"] = old
    (tmp_path / "best" / "config.json").write_text(json.dumps(config))
    again = checkpoint.load(tmp_path / "best")
    assert again.name == name
    assert again.model.config == model.config
    batch = collate(encoded, range(3), tokenizer.pad)
    with torch.no_grad():
        scores = [one.score(batch, torch.Generator().manual_seed(1)) for one in (model, again.model)]
    assert torch.equal(*scores)
    assert _what_replies(tmp_path / "best") == MODELS[name].about


@pytest.mark.parametrize("old", RENAMED_MODELS)
def test_an_old_name_is_not_a_model_any_more_and_there_and_back_is_the_same(old):
    assert old not in MODELS
    assert RENAMED_MODELS[old][0] in MODELS
    written = {"name": old, "width": 12}
    assert current_model({**written, "name": old.replace("-", "_")}) == current_model(written)
    assert earlier_model(current_model(written)) == written


def test_other_models_pass_unchanged():
    for model in ({"name": "mime", "width": 12}, {"name": "multi-trs"}, {}):
        assert current_model(model) == earlier_model(model) == model
