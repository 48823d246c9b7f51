"""A system's capabilities are read from what it declares, also through a wrapper."""

from listenwell.decoding import Decoding
from listenwell.labels.sets import EMOTION_INTENT, label_set
from listenwell.serving.engine import _each
from listenwell.systems.capabilities import METHODS, Capabilities
from listenwell.systems.reply import Reply
from listenwell.systems.together import Job, write_plainly


class Plain:
    """A system that declares nothing."""

    name = "plain"

    def reply(self, talk, controls=None):
        return Reply("yes")


class Able(Plain):
    """A system that declares everything."""

    takes_label = True
    label_set = label_set("smp")
    decoding = Decoding()

    def stream(self, talk, controls=None):
        yield "ye"
        return Reply("yes")

    def with_decoding(self, **changes):
        return self

    def plan(self, talks):
        return []

    recognise = write_together = plan


class Wrapper:
    """Forwards attribute access, as crisis care does."""

    def __init__(self, system):
        self._system = system

    def __getattr__(self, name):
        return getattr(self._system, name)


def test_a_system_that_declares_nothing_can_reply_alone():
    for system in (Plain(), Wrapper(Plain()), None):
        assert Capabilities.of(system) == Capabilities()
    assert Capabilities().label_set == EMOTION_INTENT


def test_what_is_declared_is_seen_through_a_wrapper():
    for system in (Able(), Wrapper(Able())):
        capabilities = Capabilities.of(system)
        assert all(getattr(capabilities, name) for name in METHODS)
        assert (capabilities.takes_label, capabilities.label_set.name) == (True, "smp")


def test_decoding_that_a_system_does_not_have_cannot_be_changed():
    class WithoutOptions(Able):
        decoding = None

    assert not Capabilities.of(WithoutOptions()).can_change_decoding


def test_a_reply_grows_only_where_the_system_streams():
    for system, steps in ((Plain(), 1), (Able(), 2)):
        job = Job((), None, Decoding(), number=0, grows=True)
        assert len(list(write_plainly(system, [job]))) <= steps
        assert job.text == "yes"


def test_steps_of_any_kind_can_be_closed_early():
    closed = []

    def steps():
        try:
            yield
            yield
        finally:
            closed.append(True)

    for given in (steps(), iter([None, None])):
        each = _each(given)
        next(each)
        each.close()
    assert closed == [True]
