"""The house system: it listens, plans what to do, writes several candidates and picks the one that fits best.

context ─ listener ─▶ emotion, what people would do ─┐
        ─ labeller ─▶ what each turn expresses ──────┼─ planner ─▶ plan ─ writer ─▶ candidates ─ rerank, veto ─▶ reply
last turn ─ all ────▶ what is felt now ──────────────┘                                 ▲────── all vetoed ───┘
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Unpack

import numpy as np
import torch

from listenwell.checkpoint import Checkpoint
from listenwell.classifiers.chooser import ReplyChooser
from listenwell.classifiers.label_cache import CHOOSER, HOUSE_PARTS, LABELLER, LISTENER, SENTIMENT, CachedLabeller
from listenwell.classifiers.labeller import Labeller
from listenwell.classifiers.listener import (
    ListenerClassifier,
    ListenerPrediction,
    Now,
    felt_now,
)
from listenwell.contract import Controls
from listenwell.data.dialogue import Example, Turn
from listenwell.decoding import Decoding
from listenwell.metrics.positivity import leaning
from listenwell.systems.base import Likelihoods, Precision, Talk, as_context, as_contexts, draw_number
from listenwell.systems.capabilities import Capabilities
from listenwell.systems.controls import ReplyOptions, for_this_call
from listenwell.systems.house.options import HouseDecoding
from listenwell.systems.house.pairs import make_pairs
from listenwell.systems.house.planned import (
    AGAIN,
    Planned,
    as_item,
    in_order,
    other_plans,
    plain_candidates,
    plan_ids,
)
from listenwell.systems.house.planner import PLANS, Planner, check_plannable
from listenwell.systems.house.protocol import CandidateWriter
from listenwell.systems.house.reranking import fresh, new, uplift
from listenwell.systems.house.vetoes import Sentence, find_vetoes, split_sentences
from listenwell.systems.house.writer import HouseWriter
from listenwell.systems.reply import Candidate, Reply
from listenwell.systems.together import Job, write_plainly

TOGETHER = 128
"""Number of dialogues that are read before they are answered."""

LEAST = float(np.log(0.01))
"""Lower bound of the plan term: below this log-probability, a reply simply does not do what was planned."""


class House:
    """Listens, plans and replies. The writer may be an endpoint; listening, planning and choosing run locally."""

    takes_label = True
    takes_positivity = True

    def __init__(self, parts: Mapping[str, Checkpoint], writer: CandidateWriter) -> None:
        if lacking := [name for name in HOUSE_PARTS if name not in parts]:
            raise ValueError(f"the house system lacks {', '.join(lacking)} among the parts of its checkpoint")
        self.listening = ListenerClassifier(parts[LISTENER])
        self.labeller = Labeller(parts[LABELLER])
        # Every turn of a conversation is labelled again at the next turn.
        self._turn_labels = CachedLabeller(self.labeller)
        self.sentiment = Labeller(parts[SENTIMENT], "polarity")
        self.chooser = ReplyChooser(parts[CHOOSER]) if CHOOSER in parts else None
        self.writer = writer
        self.name = writer.system_name
        check_plannable(self.listening.name, self.listening.model.emotions, self.listening.model.label_set)
        known = Capabilities.of(writer)
        check_plannable(self.name, known.emotions, known.label_set)

    @classmethod
    def of(cls, ckpt: Checkpoint) -> House:
        return cls(ckpt.parts, HouseWriter(ckpt))

    @property
    def about(self) -> Mapping[str, str]:
        """What an evaluation records about the writer."""
        return self.writer.about

    @property
    def decoding(self) -> HouseDecoding:
        return self.writer.decoding

    @decoding.setter
    def decoding(self, decoding: Decoding) -> None:
        self.writer.decoding = HouseDecoding.extend(decoding)

    @property
    def precision(self) -> Precision:
        """The precision of the writer; the parts that listen and choose always use full precision."""
        return self.writer.precision

    @precision.setter
    def precision(self, precision: Precision) -> None:
        self.writer.precision = precision

    def with_decoding(self, **changes: object) -> House:
        """Returns a copy with other decoding options."""
        other = copy(self)
        other.writer = self.writer.with_decoding(**changes)
        return other

    # Listen and plan

    def plan(self, talks: Sequence[Talk], controls: Controls | None = None, to_answer: bool = False) -> list[Planned]:
        """Recognises and plans, for each dialogue. With `to_answer`, the writer caches what it read for its reply."""
        return self._plan(as_contexts(talks, controls), controls, to_answer)

    def _plan(self, contexts: Sequence[tuple[Turn, ...]], controls: Controls | None, to_answer: bool) -> list[Planned]:
        said = self._turn_labels.label([turn.text for context in contexts for turn in context])
        ends = accumulate((len(context) for context in contexts), initial=0)
        labels = [tuple(label.name for label in said[begin:end]) for begin, end in pairwise(ends)]
        planner = Planner(self.decoding.lean)
        rows = zip(contexts, self.predict(contexts, to_answer), labels, self.feel_now(contexts), strict=True)
        return [
            Planned(context, prediction, turns, now, planner.plan(prediction, context, turns, controls, now))
            for context, prediction, turns, now in rows
        ]

    def feel_now(self, contexts: Sequence[tuple[Turn, ...]]) -> list[Now]:
        """Predicts the feeling in the last turn of each dialogue, from that turn alone."""
        last = [context[-1].text for context in contexts]
        predictions = self.listening.predict([(Turn("speaker", text),) for text in last])
        labels = self.labeller.distribution(last)
        polarities = leaning(self.sentiment.distribution(last))
        return [
            felt_now(one, dict(zip(self.labeller.names, map(float, chances), strict=True)), float(polarity))
            for one, chances, polarity in zip(predictions, labels, polarities, strict=True)
        ]

    def predict(self, contexts: Sequence[tuple[Turn, ...]], to_answer: bool = False) -> list[ListenerPrediction]:
        """Returns the predictions for each dialogue; the emotion combines listener and writer, √(p q) normalized.

        With `to_answer`, the writer caches what it read and continues from there when it replies.
        """
        log_probs = self.listening.log_probs(contexts)
        items = [Example(str(row), context) for row, context in enumerate(contexts)]
        if (felt := self.writer.feel(items, to_answer)) is not None:
            both = (log_probs["emotion"] + felt) / 2
            log_probs["emotion"] = both - np.logaddexp.reduce(both, axis=1, keepdims=True)
        return self.listening.predictions(log_probs)

    # Reply

    def reply(self, talk: Talk, controls: Controls | None = None, **named: Unpack[ReplyOptions]) -> Reply:
        house, controls = for_this_call(self, controls, named)
        planned = house._plan([as_context(talk, controls)], controls, to_answer=True)
        return house._replies(planned, [draw_number(one.context) for one in planned])[0]

    def replies(
        self,
        talks: Sequence[Talk],
        controls: Controls | None = None,
        done: Callable[[int], None] | None = None,
        first: int = 0,
        **named: Unpack[ReplyOptions],
    ) -> list[Reply]:
        house, controls = for_this_call(self, controls, named)
        contexts = as_contexts(talks, controls)
        replies: list[Reply] = []
        for begin in range(0, len(contexts), TOGETHER):  # what was read for the prediction is cached until answered
            planned = house._plan(contexts[begin : begin + TOGETHER], controls, to_answer=True)
            replies += house._replies(planned, range(first + begin, first + begin + len(planned)), done)
        return replies

    def _replies(
        self, planned: Sequence[Planned], numbers: Sequence[int], done: Callable[[int], None] | None = None
    ) -> list[Reply]:
        """`numbers` determine, with the seed, what is sampled for each."""
        talks = [row for row, one in enumerate(planned) if one.small_talk is None]
        some, drawn = [planned[row] for row in talks], [numbers[row] for row in talks]
        ranked = self.rerank(some, self._write(some, drawn, done)) if some else []
        chosen = dict(zip(talks, self._write_others(some, ranked, drawn), strict=True))
        if done is not None:
            done(len(planned) - len(some))
        return [
            self._explain(*chosen[row]) if row in chosen else self.answer_small_talk(one)
            for row, one in enumerate(planned)
        ]

    def _write_others(
        self, planned: Sequence[Planned], ranked: Sequence[list[Candidate]], numbers: Sequence[int]
    ) -> list[tuple[Planned, list[Candidate]]]:
        """Adds candidates under other plans where all were vetoed, and a plain sentence if these are vetoed, too.

        Each result has the plan that its first candidate was written for.
        """
        tries = [
            (row, other)
            for row, candidates in enumerate(ranked)
            if all(one.vetoed for one in candidates)
            for other in other_plans(planned[row])
        ]
        results = list(zip(planned, ranked, strict=True))
        if not tries:
            return results
        others = [other for _, other in tries]
        written = self.rerank(others, self._write(others, [numbers[row] + AGAIN for row, _ in tries], None))
        for (row, other), more in zip(tries, written, strict=True):
            one, before = results[row]
            together = in_order([*before, *more])
            results[row] = (other if together[0] in more else one), together
        return [(one, [*plain_candidates(one, candidates), *candidates]) for one, candidates in results]

    def stream(
        self, talk: Talk, controls: Controls | None = None, **named: Unpack[ReplyOptions]
    ) -> Generator[str, None, Reply]:
        """Streams a single candidate, which comes sooner but is not the best of several.

        Its first sentence is shown once it is complete and not vetoed. If it is vetoed, another candidate is written
        under another plan; if all are vetoed, a plain sentence is used.
        """
        house, controls = for_this_call(self, controls, named)
        return house._stream(as_context(talk, controls), controls)

    def _stream(self, context: tuple[Turn, ...], controls: Controls | None) -> Generator[str, None, Reply]:
        (one,) = self._plan([context], controls, to_answer=True)
        if one.small_talk is not None:
            yield one.small_talk[1]
            return self.answer_small_talk(one)
        vetoed: list[Candidate] = []
        for number, tried in enumerate([one, *other_plans(one)]):
            growing = self._grow(tried, draw_number(one.context) + number * AGAIN)
            held, sentence = _first_sentence(growing)
            (begun,) = self.veto([(tried, Candidate(sentence, 0.0))])
            if not begun.vetoed:
                yield from held
                text = held[-1] if held else ""
                for text in growing:
                    yield text
                return replace(self._explain(tried, [Candidate(text, 0.0), *vetoed]), candidates=())
            vetoed.append(begun)
        said = [*plain_candidates(one, vetoed), *vetoed]
        yield said[0].text
        return replace(self._explain(one, said), candidates=())

    def write_together(self, jobs: Sequence[Job]) -> Iterator[None]:
        """Writes replies for several people at once, one decoding step at a time; see listenwell.systems.together."""
        from listenwell.systems.house.together import write_house

        return write_house(self, jobs) if isinstance(self.writer, HouseWriter) else write_plainly(self, jobs)

    def _grow(self, one: Planned, number: int) -> Iterator[str]:
        return self.writer.say(as_item(0, one, self.decoding.turns), plan_ids([one])[0], number)

    def _write(
        self, planned: Sequence[Planned], numbers: Sequence[int], done: Callable[[int], None] | None
    ) -> list[list[Candidate]]:
        items = [as_item(row, one, self.decoding.turns) for row, one in enumerate(planned)]
        written = self.writer.write(items, plan_ids(planned, self.decoding.plans), numbers, done)
        return [[*candidates, *make_pairs(candidates, self.decoding.pairs)] for candidates in written]

    # Choose

    def rerank(self, planned: Sequence[Planned], written: Sequence[Sequence[Candidate]]) -> list[list[Candidate]]:
        """Returns the candidates of each dialogue, best first, with their terms and vetoes."""
        pairs = [(one, candidate) for one, candidates in zip(planned, written, strict=True) for candidate in candidates]
        weighed = self.veto([(one, candidate) for (one, _), candidate in zip(pairs, self._weigh(pairs), strict=True)])
        ends = accumulate((len(candidates) for candidates in written), initial=0)
        return [in_order(weighed[begin:end]) for begin, end in pairwise(ends)]

    def _weigh(self, pairs: Sequence[tuple[Planned, Candidate]]) -> list[Candidate]:
        """Adds the terms and their weighted sum to each candidate; without weights, candidates stay unchanged."""
        weights = self.decoding.rerank
        if not weights:
            return [candidate for _, candidate in pairs]
        columns = {name: values for name, values in self._terms(pairs) if getattr(weights, name)}
        weighed = []
        for row, (_, candidate) in enumerate(pairs):
            terms = {name: float(values[row]) for name, values in columns.items()}
            weighed.append(replace(candidate, score=weights.total(terms), terms=terms))
        return weighed

    def veto(self, pairs: Sequence[tuple[Planned, Candidate]]) -> list[Candidate]:
        """Returns the candidates, each with the reasons why it should not be used."""
        split = [split_sentences(candidate.text) for _, candidate in pairs]
        texts = list(dict.fromkeys(sentence for sentences in split for sentence in sentences))
        known: dict[str, Sentence] = {}
        if texts:
            labels, polarities = self.labeller.label(texts), leaning(self.sentiment.distribution(texts))
            rows = zip(texts, labels, polarities, strict=True)
            known = {text: Sentence(text, label.name, float(polarity)) for text, label, polarity in rows}
        return [
            replace(
                candidate,
                vetoed=find_vetoes(
                    [known[text] for text in sentences],
                    one.earlier_replies(),
                    one.is_bad_news,
                    one.now.is_good,
                    one.plan.requested,
                    one.said(),
                ),
            )
            for (one, candidate), sentences in zip(pairs, split, strict=True)
        ]

    def _terms(self, pairs: Sequence[tuple[Planned, Candidate]]) -> Iterable[tuple[str, np.ndarray | list[float]]]:
        """Yields each term of `reranking` for all candidates; model-based terms are skipped if their weight is 0."""
        weights = self.decoding.rerank
        texts = [candidate.text for _, candidate in pairs]
        if weights.likelihood and self.writer.has_likelihoods:
            yield "likelihood", [candidate.score for _, candidate in pairs]
        log_probs = self.labeller.log_probs(texts) if weights.plan or weights.positivity else np.empty((0, 0))
        if weights.plan:
            wanted = [PLANS.ids[next(iter(candidate.moves), one.plan.label)] for one, candidate in pairs]
            yield "plan", log_probs[np.arange(len(texts)), wanted].clip(LEAST)
        if weights.consensus:
            consensus = self.writer.consensus([one.last for one, _ in pairs], texts)
            if consensus is not None:
                yield "consensus", consensus
        if weights.positivity:
            turns = [one.last for one, _ in pairs]
            gain = leaning(self.sentiment.distribution(texts)) - leaning(self.sentiment.distribution(turns))
            labels = [self.labeller.names[index] for index in log_probs.argmax(axis=1)]
            yield (
                "positivity",
                [uplift(g, one.plan, name) for g, (one, _), name in zip(gain, pairs, labels, strict=True)],
            )
        if weights.fits and self.chooser is not None:
            yield "fits", self.chooser.fit([(one.context, candidate.text) for one, candidate in pairs])
        yield "fresh", [fresh(text) for text in texts]
        yield "new", [new(text, one.earlier_replies()) for (one, _), text in zip(pairs, texts, strict=True)]

    def answer_small_talk(self, one: Planned) -> Reply:
        """Answers with a fixed text. Only the emotion is predicted; there is nothing to plan."""
        assert one.small_talk is not None
        kind, text = one.small_talk
        return Reply(
            text=text,
            emotion=one.prediction.emotion,
            emotions=one.prediction.emotions,
            reasons={"plan": f"{kind}: answered in fixed words"},
            system=self.name,
        )

    def _explain(self, one: Planned, candidates: Sequence[Candidate]) -> Reply:
        plan = one.plan
        reasons = {
            "heard": list(one.labels),
            "now": str(one.now),
            "plan": plan.reason,
            "moves": list(candidates[0].moves) or [plan.label],
            "positivity": plan.positivity,
            "probability": plan.chances[next(iter(candidates[0].moves), plan.label)],
            "likeliest": dict(list(plan.expected.items())[:3]),
        }
        if vetoed := [
            f"{candidate.text} ({', '.join(candidate.vetoed)})" for candidate in candidates if candidate.vetoed
        ]:
            reasons["vetoed"] = vetoed
        return Reply(
            text=candidates[0].text,
            emotion=one.prediction.emotion,
            emotions=one.prediction.emotions,
            label=next(iter(candidates[0].moves), plan.label),
            reasons=reasons,
            candidates=tuple(candidates),
            system=self.name,
        )

    # Measure

    def likelihoods(self, items: Sequence[Example], done: Callable[[int], None] | None = None) -> Likelihoods | None:
        """Marginalizes over the plan by what people would do, without the lean, which is a choice made at inference."""
        if not self.writer.has_likelihoods:
            return None
        chances = self.listening.log_probs([item.context for item in items])["label"]
        return self.writer.likelihoods_by(items, torch.from_numpy(chances), done)

    def oracle_likelihoods(
        self, items: Sequence[Example], done: Callable[[int], None] | None = None
    ) -> Likelihoods | None:
        return self.writer.oracle_likelihoods(items, done)


def _first_sentence(growing: Iterator[str]) -> tuple[list[str], str]:
    """Reads until the first sentence is complete; returns the texts so far and that sentence."""
    held: list[str] = []
    for text in growing:
        held.append(text)
        if len(sentences := split_sentences(text)) > 1:
            return held, sentences[0]
    return held, held[-1] if held else ""
