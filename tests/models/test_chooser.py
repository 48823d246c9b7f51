"""The chooser: its input against a slow computation, its training, and its checkpoint."""

import torch
from torch.nn import functional as F

from listenwell import checkpoint
from listenwell.classifiers.chooser import ReplyChooser
from listenwell.contract import Moment
from listenwell.data.batching import Targets, collate, encode
from listenwell.data.dialogue import Example, Label, Turn
from listenwell.labels.sets import ORIGINS

CONTEXTS = (
    (Turn("speaker", "I am so happy today!"),),
    (Turn("speaker", "no"), Turn("listener", "oh"), Turn("speaker", "I lost it")),
)
REPLIES = ("That is great.", "I am sorry to hear that.")


def batch_of(made, origins=("here", "written")):
    items = [
        Example(str(row), context, Turn("listener", reply, Label(origin)))
        for row, (context, reply, origin) in enumerate(zip(CONTEXTS, REPLIES, origins, strict=True))
    ]
    sets = made.model.label_sets("tell")
    targets = Targets(labels=sets.label, emotions=sets.emotion)
    data = encode(items, made.tokenizer, made.encoding, targets=targets)
    return collate(data, range(len(items)), made.tokenizer.pad)


@torch.no_grad()
def test_a_reply_is_read_beside_its_dialogue_and_judged_by_its_own_positions(tiny_chooser):
    made = tiny_chooser(labels="origin")
    model, tokenizer = made.model, made.tokenizer
    for context, reply in zip(CONTEXTS, REPLIES, strict=True):
        ids = [i for turn in context for i in (tokenizer.start, *tokenizer.encode(turn.text), tokenizer.end)]
        own = [*tokenizer.encode(reply), tokenizer.end]
        segments = torch.tensor([[0] * len(ids) + [1] * len(own)])
        encoder = model.backbone.model
        hidden = encoder(torch.tensor([ids + own]), segments=segments)[0][len(ids) :]
        scores = torch.stack([model.head.attention @ h for h in hidden]) / hidden.shape[1] ** 0.5
        pooled = sum(weight * h for weight, h in zip(scores.softmax(0), hidden, strict=True))
        slow = F.log_softmax(model.head.out.weight @ pooled + model.head.out.bias, dim=0)[ORIGINS.labels.index("here")]
        (found,) = ReplyChooser(made).fit([(context, reply)])
        assert abs(found - float(slow)) < 1e-5


def test_pairs_are_judged_alike_alone_and_together(tiny_chooser):
    chooser = ReplyChooser(tiny_chooser(labels="origin"))
    pairs = [(context, reply) for context in CONTEXTS for reply in REPLIES]
    together = chooser.fit(pairs)
    for pair, found in zip(pairs, together, strict=True):
        assert abs(chooser.fit([pair])[0] - found) < 1e-5
    assert len({round(float(found), 4) for found in together}) == 4


def test_it_learns_to_tell_origins_apart_and_what_was_said_here_can_count_more(tiny_chooser):
    made = tiny_chooser(labels="origin")
    batch = batch_of(made)
    terms = made.model.tell(batch, Moment())
    plain = F.cross_entropy(made.model.logits(batch), batch.label, reduction="none")
    assert torch.allclose(terms["label"].total, plain.sum())
    weighed = made.model.tell(batch, Moment(), first=3.0)["label"]
    assert torch.allclose(weighed.total, 3 * plain[0] + plain[1])
    assert weighed.count == 4
    optimizer = torch.optim.Adam(made.model.head.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        made.model.tell(batch, Moment())["label"].total.backward()
        optimizer.step()
    assert made.model.tell(batch, Moment())["label-accuracy"].total == 2


def test_only_the_upper_layers_are_kept_and_the_rest_is_the_backbones(tiny_chooser, tmp_path):
    made = tiny_chooser(labels="origin")
    checkpoint.save(made, tmp_path / "chooser")
    kept = checkpoint.read_tensors(tmp_path / "chooser" / "model.safetensors")
    assert any(".layer.1." in name for name in kept)
    assert not any(".layer.0." in name or "word_embeddings" in name for name in kept)
    again = checkpoint.load(tmp_path / "chooser")
    pairs = [(CONTEXTS[1], reply) for reply in REPLIES]
    assert (ReplyChooser(again).fit(pairs) == ReplyChooser(made).fit(pairs)).all()


@torch.no_grad()
def test_a_chooser_of_ratings_scores_by_the_expected_rating(tiny_chooser):
    made = tiny_chooser()
    pairs = [(context, reply) for context in CONTEXTS for reply in REPLIES]
    found = ReplyChooser(made).fit(pairs)
    assert ((found > 1) & (found < 5)).all()
    batch = batch_of(made, ("1", "4"))
    chances = made.model.logits(batch).softmax(-1)
    slow = [sum((level + 1) * float(chance) for level, chance in enumerate(row)) for row in chances]
    assert torch.allclose(made.model.fit(batch), torch.tensor(slow), atol=1e-5)
