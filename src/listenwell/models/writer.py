"""The house system's writer (`house-writer`): a pretrained language model that writes replies by a plan.

A causal language model, which stays as it is, with low-rank adapters on all its projections, which learn. The dialogue
is in ChatML, as a chat model knows it, and the plan stands in the header of the reply, behind the context: what was
read of the context serves every plan and every candidate.

    <|im_start|>user
    I lost my job.<|im_end|>
    <|im_start|>assistant (consoling)            p(reply | context, plan); without a plan the header is plain
    I am so sorry.<|im_end|>

The same weights also go the other way, as Dual-Emp's backward model does: from a reply to the turn that it answers.

    <|im_start|>assistant
    I am so sorry.<|im_end|>
    <|im_start|>answers
    I lost my job.<|im_end|>                     p(last turn | reply)

The plan is one of the 41 labels, or of another set's. This model does not make it; where there is none, the header is
plain.

It can also be trained on replies of a second kind, such as those of an attentive listener. They have a header of their
own (`voice`), and it then talks in that voice; likelihoods are still those of people's replies.

    <|im_start|>attentive (consoling)
    I am so sorry about your job. Eleven years is a long time.<|im_end|>

What it makes of the context also tells what the speaker feels, as BERT (JT) learns emotion and reply together: it
reads the context anyway.

    α = softmax_t(v·h_t / √width),   p(emotion | context) = softmax(W Σ α_t h_t / temperature)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell.backbones.lora import (
    Layout,
    MergedWeights,
    fill,
    language_architecture,
    make_adapted,
    own_names,
    stored_weights,
)
from listenwell.backbones.reading import Memory, joined, read_on
from listenwell.backbones.stored import StoredWeights
from listenwell.contract import (
    ABSENT,
    Batch,
    Controls,
    Moment,
    Sequence,
    State,
    Term,
    Vocabulary,
    WordPrior,
    chosen,
)
from listenwell.labels.sets import label_set
from listenwell.layers.head import Head
from listenwell.layers.loss import packed_cross_entropy
from listenwell.layers.packing import Places
from listenwell.models.chat_text import PLAIN, ChatText, Read
from listenwell.models.joined_text import REPLY, Text
from listenwell.models.label_sum import LikelyLabels, check_summed
from listenwell.models.terms import classification_terms, sum_by_row
from listenwell.text import backbone_tokenizer
from listenwell.text.chatml import LISTENER, chat_headers

AT_ONCE = 64
"""For scores under many plans: rows that are read together. Each has a copy of its context's keys and values."""


@dataclass
class WriterConfig:
    """Which language model, how wide its adapters are, and how the plan is summed out."""

    backbone: str = "smollm2"
    """The pretrained language model: a folder, or a name such as smollm2. Its tokens are to be read too: the recipe's
    text has kind backbone and the same name, and its encoding has turns: chatml."""
    architecture: dict[str, Any] = field(default_factory=dict)
    """The language model's sizes; those of the backbone if not given."""
    headers: dict[str, list[int]] = field(default_factory=dict)
    """The token ids of the headers by what they stand for, as `listenwell.text.chatml` writes them; with the
    backbone's tokenizer if not given."""
    emotions: str = "emotion"
    """What a speaker may feel: a label set by name, the 32 or another, such as one of the recipe's own `label_sets`."""
    labels: str = "emotion-intent"
    """What a plan may be: a label set by name too. The recipe's data has the same `labels`."""
    voice: str = ""
    """The voice in which it talks, a word that stands in the header; if empty, it talks as people did."""
    rank: int = 16
    """Width of the adapters."""
    scale: float = 2.0
    """What an adapter's part of a sum is multiplied by: alpha / rank in the words of LoRA."""
    emotion_dropout: float = 0.1
    """On what the emotion is classified from."""
    score_mass: float = 0.95
    """For the likelihood under a planner: so much of its probability is summed over, the likeliest labels first."""
    score_most: int = 6
    """For the likelihood under a planner: over at most so many labels, 0 for all. The rest is of no plan."""


class Writer(ChatText):
    """p(reply | context, plan), p(emotion | context) and p(last turn | reply)."""

    Config = WriterConfig
    config: WriterConfig
    objectives: ClassVar[Mapping[str, str]] = {
        "likelihood": "likelihood",
        "backward": "backward",
        "recognise": "recognise",
        "hear": "recognise",  # its name in the recipes of earlier checkpoints
    }
    takes_label = True
    has_oracle_score = True
    calibration = "emotion"

    def __init__(self, config: WriterConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        if config.rank < 1:
            raise ValueError(f"rank is {config.rank}, expected at least 1")
        check_summed(config.score_mass, config.score_most)
        self.config = config
        self.vocabulary = vocabulary
        self.emotions, self.label_set = label_set(config.emotions), label_set(config.labels)
        self.backbone = make_adapted(config.architecture, config.rank, config.scale)
        self._own_names = own_names(self.backbone)
        self._stored: StoredWeights | None = None
        """Where the backbone's weights are, as long as they are not read."""
        self.register_state_dict_pre_hook(_read_first)
        vocabulary.check_known(len(self._table), config.backbone)
        self.emotion = Head(self._table.shape[1], len(self.emotions), config.emotion_dropout)
        self._tabulate(config.voice)

    @classmethod
    def complete(cls, config: WriterConfig) -> WriterConfig:
        """Kept whole in a checkpoint: it says what it was trained with, whatever the backbone's files say later."""
        return replace(
            config,
            architecture=config.architecture or language_architecture(config.backbone),
            headers=config.headers
            or chat_headers(backbone_tokenizer(config.backbone), label_set(config.labels), config.voice),
        )

    @property
    def pretrained(self) -> str:
        return self.config.backbone

    # What is the backbone's

    def initialise(self, prior: WordPrior) -> None:
        if self.config.headers[LISTENER][0] != self.vocabulary.start:
            wanted = f"{{kind: backbone, backbone: {self.config.backbone}}}"
            raise ValueError(f"the text is not that of the backbone: write text: {wanted}")
        fill(self.backbone, self.config.backbone)

    def borrowed(self) -> frozenset[str]:
        return frozenset(f"backbone.{name}" for name in self._own_names)

    def borrow(self) -> None:
        """The backbone's weights are read when something first needs them all: an engine with merged weights, which
        is all that talks, takes them from the file one by one."""
        self._stored = stored_weights(self.backbone, self.config.backbone, self._own_names)
        if self._stored is None:
            fill(self.backbone, self.config.backbone)

    def _fill_stored(self) -> None:
        if self._stored is not None:
            self._stored = None
            with torch.inference_mode(False):  # what is read while measuring may be learned with later
                fill(self.backbone, self.config.backbone)

    def merged(self) -> MergedWeights:
        """The weights of a plain language model that writes the same, for an engine that knows no adapters."""
        if self._stored is not None:
            return MergedWeights(self.backbone, self._stored)
        weights = self.backbone.state_dict()
        return MergedWeights(self.backbone, {plain: weights[own] for own, plain in self._own_names.items()})

    @property
    def _table(self) -> Tensor:
        """By which words are chosen. A backbone may have more rows than it has words."""
        return self.backbone.get_output_embeddings().weight[: self.vocabulary.size]

    @property
    def _bias(self) -> Tensor | None:
        bias = self.backbone.get_output_embeddings().bias
        return None if bias is None else bias[: self.vocabulary.size]

    # Reading without memory: learning and scoring

    def _hidden(self, text: Text) -> Tensor:
        """What the backbone makes of every real position, (positions, width), texts one behind the other."""
        self._fill_stored()
        places = torch.arange(text.mask.shape[1], device=text.mask.device).expand_as(text.mask)[text.mask]
        layout = Layout(text.mask)
        output = self.backbone.base_model(
            input_ids=layout.padded(text.tokens[text.mask])[None],
            position_ids=layout.padded(places)[None],
            layout=layout,
            use_cache=False,
        )
        return output.last_hidden_state[0, : len(places)]

    def _costs(self, hidden: Tensor, text: Text) -> tuple[Tensor, Tensor]:
        """The summed −log p of the words of replies, and each one's, from the positions before them."""
        index = (text.use[text.mask] == REPLY).nonzero()[:, 0]
        targets = text.tokens[text.mask][index]
        return packed_cross_entropy(hidden[index - 1], self._table, self._bias, targets)

    def _score(self, text: Text) -> Tensor:
        """−log p (batch,) of the words of the reply."""
        _, nll = self._costs(self._hidden(text), text)
        return sum_by_row(nll, text.mask & (text.use == REPLY))

    def likelihood(
        self,
        batch: Batch,
        moment: Moment,
        plan: float = 0.7,
        inner: bool = True,
        emotion_smoothing: float = 0.0,
        own: bool = False,
    ) -> dict[str, Term]:
        """The reply's and the emotion's negative log-likelihood; `plan` is how often the reply's label is given,
        `inner` whether the earlier replies of the context are learned with it, every word alike; `own` whether the
        replies are in the model's own voice.

        In validation no label is given, for in use the label of what people said is not known, and the
        earlier replies are left out: they are the replies of other examples.
        """
        assert batch.reply is not None
        assert batch.emotion is not None
        plans = self._drawn_plans(batch, moment, plan if self.training else 0.0)
        context = self.context(batch, inner and self.training)
        text = Text.joined(context, self.header(plans, own), Text.of(batch.reply, REPLY))
        hidden = self._hidden(text)
        loss, nll = self._costs(hidden, text)
        places = torch.arange(text.mask.shape[1], device=hidden.device)
        lengths = context.mask.sum(dim=1, keepdim=True)
        of_context = hidden[(places < lengths)[text.mask]]
        believed = self.believe(Places(context.mask).spread(of_context), context.mask)
        return {
            "reply": Term(loss, len(nll)),
            **classification_terms("emotion", believed, batch.emotion, emotion_smoothing),
        }

    def recognise(self, batch: Batch, moment: Moment, smoothing: float = 0.0) -> dict[str, Term]:
        """The emotion's negative log-likelihood from the context alone. Only the head learns, so nothing below it is
        stored for a gradient."""
        assert batch.emotion is not None
        text = Text.joined(self.context(batch))
        with torch.no_grad():
            hidden = self._hidden(text)
        believed = self.believe(Places(text.mask).spread(hidden), text.mask)
        return classification_terms("emotion", believed, batch.emotion, smoothing)

    def believe(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """log p(emotion | context), (batch, emotions), from the encoded context (batch, time, width)."""
        with torch.autocast(hidden.device.type, enabled=False):
            return self.emotion.log_probs(hidden.to(self.emotion.attention.dtype), mask)

    def feel(self, batch: Batch) -> Tensor:
        """The same by the context itself."""
        text = Text.joined(self.context(batch))
        hidden, _ = self._read(text)
        return self.believe(hidden, text.mask)

    def _drawn_plans(self, batch: Batch, moment: Moment, share: float) -> Tensor:
        """The labels given (batch,), drawn by the rows and the moment alone: a resumed run repeats them."""
        return torch.where(moment.draw(batch, share), self.gold(batch), PLAIN)

    def gold(self, batch: Batch) -> Tensor:
        """The replies' own labels (batch,), PLAIN where there is none."""
        assert batch.label is not None
        return torch.where(batch.label == ABSENT, PLAIN, batch.label)

    def backward(self, batch: Batch, moment: Moment) -> dict[str, Term]:
        """The negative log-likelihood of the context's last turn, given the reply alone."""
        assert batch.context is not None
        assert batch.reply is not None
        text = Text.joined(self.answered(batch.reply), Text.of(self.last_turn(batch.context), REPLY))
        loss, nll = self._costs(self._hidden(text), text)
        return {"backward": Term(loss, len(nll))}

    def score(self, batch: Batch, generator: torch.Generator | None = None, chances: Tensor | None = None) -> Tensor:
        """−log p(reply | context), the end counted; with the log-chances of all labels (batch, labels) that a
        planner gives, −log of Σ p(plan | context) p(reply | context, plan) over the likeliest plans, with what is left
        of the planner's probability on a reply without a plan.
        """
        assert batch.reply is not None
        if chances is None:
            return self._score_planned(batch, torch.full_like(batch.reply.tokens[:, 0], PLAIN))
        return self.summed_out(chances, lambda rows, labels: self._many_scores(batch, rows, labels))

    def summed_out(self, chances: Tensor, scores: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """That sum, of scores under plans: `scores` is given rows of the batch and a label for each, maybe PLAIN."""
        likely = LikelyLabels.of(chances, self.config.score_mass, self.config.score_most, unlabelled=True)
        every = torch.arange(len(chances), device=likely.rows.device)
        labels = torch.cat([likely.labels, torch.full_like(every, PLAIN)])
        nll = scores(torch.cat([likely.rows, every]), labels)
        return -likely.log_sum_with_rest(nll[: len(likely.rows)], nll[len(likely.rows) :])

    def oracle_score(self, batch: Batch) -> Tensor:
        """−log p(reply | context, plan) with the *true* label: not to be had in use, only to stand beside a score."""
        return self._score_planned(batch, self.gold(batch))

    def _score_planned(self, batch: Batch, plan: Tensor) -> Tensor:
        assert batch.reply is not None
        return self._score(Text.joined(self.context(batch), self.header(plan), Text.of(batch.reply, REPLY)))

    def plan_scores(self, batch: Batch, labels: Tensor) -> Tensor:
        """−log p(reply | context, plan) of each plan (batch, k): ids of labels, or PLAIN. The context is read once."""
        rows = torch.arange(len(batch), device=labels.device).repeat_interleave(labels.shape[1])
        return self._many_scores(batch, rows, labels.flatten()).view(labels.shape)

    def backward_scores(self, replies: Sequence, turns: Sequence) -> Tensor:
        """−log p(turn | reply) of each row; both end with the end token. Of a context, `last_turn` gives the turns."""
        return self._score(Text.joined(self.answered(replies), Text.of(turns, REPLY)))

    # Reading with memory: many plans, and writing

    def _read(self, text: Text, before: Read | None = None, own: Memory | None = None) -> tuple[Tensor, Memory]:
        """What the backbone makes of the text behind what was read `before` and of its `own`: (batch, time, width),
        and the keys and values of all that is its own."""
        self._fill_stored()
        known = text.mask.new_zeros(len(text.mask), 0) if before is None else before.mask
        return read_on(self.backbone, text.tokens, known, [] if before is None else before.memory, own or [])

    def read(self, batch: Batch) -> Read:
        """The context alone, for many plans."""
        text = Text.joined(self.context(batch))
        _, memory = self._read(text)
        nothing = torch.full_like(text.tokens[:, 0], PLAIN)
        return Read(memory, text.mask, nothing, nothing)

    def _many_scores(self, batch: Batch, rows: Tensor, labels: Tensor) -> Tensor:
        """−log p(reply | context, label) of rows of the batch, each with a label of its own."""
        assert batch.reply is not None
        context = self.read(batch)
        scores = []
        for some, plans in zip(rows.split(AT_ONCE), labels.split(AT_ONCE), strict=True):
            text = Text.joined(self.header(plans), Text.of(chosen(batch.reply, some), REPLY))
            hidden, _ = self._read(text, chosen(context, some))
            _, nll = self._costs(hidden[text.mask], text)
            scores.append(sum_by_row(nll, text.mask & (text.use == REPLY)))
        return torch.cat(scores)

    def plan(self, batch: Batch, labels: Tensor) -> State:
        """A state for each plan (batch, k) of each row, next to each other, from one reading of the context."""
        rows = torch.arange(len(batch), device=labels.device).repeat_interleave(labels.shape[1])
        before = chosen(self.read(batch), rows)
        text, first = self.opening(self.header(labels.flatten(), own=True))
        _, own = self._read(text, before)
        memory = joined(before.memory, own)
        return State(fixed=Read(memory, torch.cat([before.mask, text.mask], dim=1), first, labels.flatten()))

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Literal["forward", "backward"] = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        """Replies with the requested label, else without a plan. Backward it reads the reply and writes the turn."""
        plan = torch.full((len(batch),), PLAIN, device=self.plan_tokens.device)
        context = None
        if direction == "backward":
            assert batch.reply is not None
            text = self.answered(batch.reply)
        else:
            if controls is not None and controls.label is not None:
                plan = torch.full_like(plan, self.label_set.id_of(controls.label))
            context = Text.joined(self.context(batch))
            text = Text.joined(context, self.header(plan, own=True))
        text, first = self.opening(text)
        hidden, memory = self._read(text)
        beliefs = {}
        if context is not None:
            beliefs["emotion"] = self.believe(hidden[:, : context.mask.shape[1]], context.mask)
        return State(beliefs, Read(memory, text.mask, first, plan))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        # The header has a token left where other models have the start token.
        tokens = (state.fixed.first if state.length == 0 else tokens)[:, None]
        text = Text(tokens, torch.ones_like(tokens, dtype=torch.bool), tokens)
        hidden, own = self._read(text, state.fixed, state.moving)
        # In full precision also where the layers are not, as in the loss.
        with torch.autocast(hidden.device.type, enabled=False):
            logits = F.linear(hidden[:, 0].to(self._table.dtype), self._table, self._bias)
        return logits, State(state.beliefs, state.fixed, own, state.length + 1)

    def reasons(self, state: State, row: int) -> dict[str, Any]:
        """Its plan, if it has one."""
        plan = int(state.fixed.plan[row])
        return {} if plan == PLAIN else {"plan": self.label_set.labels[plan]}


def _read_first(model: Writer, *_: object) -> None:
    """Whoever asks for all weights gets those of the backbone, too."""
    model._fill_stored()
