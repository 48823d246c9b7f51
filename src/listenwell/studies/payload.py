"""The data sent to a rater's page: texts under letters, and nothing about systems or other raters."""

from __future__ import annotations

from typing import Any

from listenwell.labels.taxonomy import EMOTIONS
from listenwell.studies.chinese import in_chinese
from listenwell.studies.kinds import DRAG_QUESTION
from listenwell.studies.layout import letters
from listenwell.studies.practice import practice_task
from listenwell.studies.rating import Assignment, Rater, Ratings
from listenwell.studies.records import Design

TITLE = {"en": "Rating study", "zh": "评分研究"}
WELCOME = {
    "en": ["Thank you for taking part.", "You will read short conversations and judge replies to them."],
    "zh": ["感谢您的参与。", "您将阅读简短的对话，并对其中的回复进行评价。"],
}


class Payloads:
    """Builds the state that a rater's page gets. The frozen design is read once, since it never changes."""

    def __init__(self, ratings: Ratings, design: Design) -> None:
        self.ratings, self.study = ratings, ratings.study
        self.items = {item.id: item for item in design.items}
        self.replies = design.replies

    def state(self, token: str) -> dict[str, Any]:
        ratings = self.ratings
        rater = ratings.rater(token)
        closed = ratings.is_closed()
        if self.study.spec.practice and not rater.practised and not closed:
            kind = ratings.kind
            task: dict[str, Any] | None = practice_task(kind, self.study.spec.language)
            state = "practice"
        else:
            assignment = ratings.current(rater)
            task = None if assignment is None or closed else self.task(assignment)
            state = self._state(rater, closed, task)
        progress = ratings.progress(rater)
        finished = progress.tasks_done > 0
        return {
            "study": self.about(),
            "progress": {"done": progress.done, "total": progress.total},
            "state": state,
            "task": task,
            "completion_code": rater.completion_code if finished and (task is None or state == "rating") else None,
        }

    def _state(self, rater: Rater, closed: bool, task: Any) -> str:
        if closed:
            return "closed"
        if task is not None:
            return "rating"
        return "done" if self.ratings.progress(rater).tasks_done else "used-up"

    def about(self) -> dict[str, Any]:
        spec, kind = self.study.spec, self.ratings.kind
        spoken = spec.spoken
        scales = [scale.to_json() for scale in kind.scales]
        if spoken == "zh" and scales:
            scales = in_chinese(spec.scale_set)
        return {
            # Never the study's name: it may reveal which systems are compared.
            "title": spec.title or TITLE[spoken],
            "kind": spec.kind,
            "language": spec.language or spoken,
            "welcome": spec.welcome or WELCOME[spoken],
            "instructions": spec.instructions,
            "scales": scales or _question(spec.kind, spoken),
            "choices": list(kind.choices),
        }

    def task(self, assignment: Assignment) -> dict[str, Any]:
        items = [self.item(entry["item"], entry["systems"]) for entry in assignment.layout]
        return {"id": assignment.task_id, "practice": False, "items": items, "answered": list(assignment.answered)}

    def item(self, item_id: str, systems: list[str]) -> dict[str, Any]:
        item, spec = self.items[item_id], self.study.spec
        judges_emotion = spec.kind == "emotion" and not spec.picks_emotion
        replies = []
        for letter, system in letters(systems).items():
            reply = self.replies[item_id, system]
            shown: dict[str, Any] = {"key": letter, "text": reply.text}
            if judges_emotion:
                shown["emotion"] = reply.emotion or item.emotion
            replies.append(shown)
        return {
            "id": item_id,
            "context": [dict(turn) for turn in item.context],
            "reference": item.reference if spec.show_reference else None,
            "replies": replies,
            "emotion_choices": list(EMOTIONS) if spec.picks_emotion else None,
        }


def _question(kind: str, spoken: str) -> list[dict[str, Any]]:
    """The question for a kind without scales; if there is none, the page uses its own wording."""
    if kind == "drag" and spoken == "en":
        return [{"key": "appropriate", "name": "", "question": DRAG_QUESTION, "anchors": {}, "min": 0, "max": 0}]
    return []
