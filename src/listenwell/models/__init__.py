"""The model registry. A model's module is imported only when the model is built, so listing models is cheap.

An ablation is not a separate model but a recipe that sets a field of a model's config, such as
`model: {name: mime, mimicry: false}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from listenwell.labels.taxonomy import unknown_name
from listenwell.plugins import import_plugin, plugins

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from listenwell.contract import Model, Vocabulary
    from listenwell.decoding import Decoding
    from listenwell.labels.sets import LabelSet


@dataclass(frozen=True, slots=True)
class Entry:
    """A model's class, what it does, and the paper it comes from."""

    module: str
    cls: str
    about: str
    paper: str
    choices: dict[str, Any] = field(default_factory=dict)
    """Config fields that the name implies, for a class that implements two published models."""
    decoding: str = "listenwell.decoding.options:Decoding"
    """The class of its system's decoding options, as `module:Class`."""


MODELS: dict[str, Entry] = {
    "trs": Entry(
        "listenwell.models.trs",
        "Trs",
        "plain transformer",
        "Vaswani et al. 2017; baseline of Rashkin et al. 2019",
    ),
    "multi-trs": Entry(
        "listenwell.models.trs",
        "Trs",
        "transformer that also classifies the emotion",
        "Rashkin et al. 2019; baseline of MoEL, MIME, Dual-Emp",
        {"emotion": True},
    ),
    "mime": Entry(
        "listenwell.models.mime",
        "Mime",
        "replies that mimic the speaker's emotion, mixed by polarity",
        "Majumder et al. 2020",
    ),
    "moel": Entry(
        "listenwell.models.moel",
        "Moel",
        "mixture of 32 empathetic listeners",
        "Lin et al. 2019; baseline of MIME, Dual-Emp",
    ),
    "empdg": Entry(
        "listenwell.models.empdg",
        "Empdg",
        "transformer that also reads the emotional words alone, and learns from two judges",
        "Li et al. 2020; baseline of Dual-Emp",
    ),
    "dual-emp": Entry(
        "listenwell.models.dual_emp",
        "DualEmp",
        "a forward and a backward model that agree on an emotion, and learn from data without pairs too",
        "Shen et al. 2021",
    ),
    "dual-vae": Entry(
        "listenwell.models.dual_vae",
        "DualVae",
        "conditional autoencoder whose latent also writes the reply back alone",
        "baseline of Shen et al. 2021",
    ),
    "meed2": Entry(
        "listenwell.models.meed2",
        "Meed2",
        "transformer that reads a label in every turn and predicts, or is given, the label of its reply",
        "Xie and Pu 2021",
    ),
    "emotion-intent": Entry(
        "listenwell.models.classifier",
        "Classifier",
        "classifier of 32 emotions, 8 intents and neutral, by which utterances are labelled",
        "Welivita and Pu 2020; Xie and Pu 2021",
    ),
    "polarity": Entry(
        "listenwell.models.classifier",
        "Classifier",
        "classifier of negative, neutral and positive utterances, by which replies are chosen or measured",
        "after the sentiment evaluator of strategy memory",
        {"labels": "polarity"},
    ),
    "crisis": Entry(
        "listenwell.models.classifier",
        "Classifier",
        "classifier of signs of a crisis in a message, by which crisis care listens",
        "written for crisis care",
        {"labels": "crisis", "pooling": "mean-and-maximum"},
    ),
    "epitome": Entry(
        "listenwell.models.epitome",
        "Epitome",
        "classifier of how much empathy a reply to a post shows: emotional reactions, interpretations, explorations",
        "Sharma et al. 2020",
    ),
    "chooser": Entry(
        "listenwell.models.chooser",
        "Chooser",
        "the house system's chooser: how good a reader would find a reply to a dialogue",
        "part of the house system",
    ),
    "house-listener": Entry(
        "listenwell.models.listener",
        "Listener",
        "the house system's listener: the emotion of a dialogue, and the label that people would reply with",
        "joins BERT (JT)'s emotion side and MEED2's predictor",
    ),
    "house-writer": Entry(
        "listenwell.models.writer",
        "Writer",
        "the house system's writer: a pretrained language model with adapters that follows a plan",
        "joins MEED2's control and Dual-Emp's two directions",
        decoding="listenwell.systems.house.options:HouseDecoding",
    ),
    "bert-joint": Entry(
        "listenwell.models.bert_joint",
        "BertJoint",
        "pretrained encoder for the emotion and recurrent network for the reply, learned together",
        "BERT (JT), Table 1",
    ),
    "strategy-memory": Entry(
        "listenwell.models.strategy_memory",
        "StrategyMemoryModel",
        "transformer led by a memory of responding strategies for each emotion, and towards the positive",
        "strategy memory, Tables 1 to 3",
    ),
    "seq2seq": Entry(
        "listenwell.models.seq2seq",
        "Seq2Seq",
        "recurrent sequence-to-sequence model with attention",
        "Shang et al. 2015; baseline of strategy memory",
    ),
    "trs-ecm": Entry(
        "listenwell.models.ecm",
        "Ecm",
        "emotional chatting machine on a transformer: an emotion that is spent along the reply, and emotional words",
        "Zhou et al. 2018; baseline of strategy memory",
    ),
    "seq2seq-ecm": Entry(
        "listenwell.models.ecm",
        "EcmSeq2Seq",
        "emotional chatting machine on GRUs",
        "Zhou et al. 2018; baseline of strategy memory",
    ),
    "trs-rl": Entry(
        "listenwell.models.rewarded",
        "TrsRl",
        "transformer that is rewarded for positive replies",
        "Shin et al. 2020; baseline of strategy memory",
    ),
    "trs-dual": Entry(
        "listenwell.models.rewarded",
        "TrsDual",
        "transformer given a polarity, rewarded for it and for replies from which the query can be written back",
        "Shen and Feng 2020; baseline of strategy memory",
    ),
    "text-encoder": Entry(
        "listenwell.models.text_encoder",
        "TextEncoder",
        "small encoder pretrained by masked tokens, then a classifier: strategy memory's detector and evaluator",
        "stands for BERT in strategy memory",
    ),
    "emo-prepend": Entry(
        "listenwell.models.emo_prepend",
        "EmoPrepend",
        "plain transformer that reads the likeliest emotion in front of the context",
        "Rashkin et al. 2019; baseline of BERT (JT)",
    ),
}


GROUP = "listenwell.models"
"""The entry point group through which other packages add models."""


def all_models() -> dict[str, Entry]:
    """listenwell's own models plus those added by installed packages."""
    added = {name: _of_plugin(plugin) for name, plugin in plugins(GROUP, MODELS, needs_class=True).items()}
    return {**MODELS, **added}


def _of_plugin(plugin: EntryPoint) -> Entry:
    package = plugin.dist.name if plugin.dist is not None else plugin.module
    return Entry(plugin.module, plugin.attr, f"added by {package}", "")


RENAMED_MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "mime-no-stochasticity": ("mime", {"stochasticity": False}),
    "mime-no-mimicry": ("mime", {"mimicry": False}),
    "mime-no-grouping": ("mime", {"mimicry": False, "grouping": False}),
    "mime-reply-seen": ("mime", {"reply_seen": True}),
    "moel-top-k": ("moel", {"top_k": 5}),
    "sing-emp": ("dual-emp", {"dual": False}),
    "meed2-plain": ("meed2", {"labels": False}),
    "bilstm-joint": ("bert-joint", {"emotion_from": "bilstm"}),
    "bilstm-attn-joint": ("bert-joint", {"emotion_from": "bilstm-attention"}),
}
"""Model names used in older checkpoints and recipes, mapped to today's name and config fields."""

RENAMED_FIELDS: dict[str, dict[str, str]] = {"meed2": {"untold": "unconditional_share"}}
"""Config field names used in older checkpoints and recipes, mapped to today's names."""


def current_model(model: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a model's `name` and config fields from a checkpoint or recipe of any version to today's form."""
    old = str(model.get("name", "")).replace("_", "-")
    name, choices = RENAMED_MODELS.get(old, (old, {}))
    fields = RENAMED_FIELDS.get(name, {})
    own = {fields.get(key, key): value for key, value in model.items()}
    return {**choices, **own, "name": name} if old in RENAMED_MODELS else own


def earlier_model(model: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse, for models that used to have their own name; fingerprints of earlier runs were computed from it."""

    def fits(name: str, choices: dict[str, Any]) -> bool:
        return model.get("name") == name and all(key in model and model[key] == choices[key] for key in choices)

    fields = {new: old for old, new in RENAMED_FIELDS.get(str(model.get("name")), {}).items()}
    model = {fields.get(key, key): value for key, value in model.items()}
    names = [old for old, (name, choices) in RENAMED_MODELS.items() if fits(name, choices)]
    if not names:
        return model
    old = max(names, key=lambda old: len(RENAMED_MODELS[old][1]))
    rest = {key: value for key, value in model.items() if key not in RENAMED_MODELS[old][1]}
    return {**rest, "name": old}


def entry(name: str) -> Entry:
    """The registry entry of a model by its hyphenated name; underscores are accepted."""
    hyphenated = name.replace("_", "-")
    known = MODELS if hyphenated in MODELS else all_models()
    if hyphenated not in known:
        raise ValueError(unknown_name("model", name, known))
    return known[hyphenated]


def model_class(name: str) -> type[Model]:
    """The class of a model by name. If a plugin's module lacks the class, the error names the plugin."""
    known = entry(name)
    module = import_plugin(name, known.module)
    if not hasattr(module, known.cls):
        raise ValueError(f"{name}: the module {known.module} has no class {known.cls}")
    return getattr(module, known.cls)


def decoding_class(name: str) -> type[Decoding]:
    """The class of a model's decoding options. Registered as a string, since systems are layered above models."""
    module, _, cls = entry(name).decoding.partition(":")
    return getattr(import_module(module), cls)


def writing(direction: str) -> list[str]:
    """Names of the models that can generate in a direction."""
    return [name for name in all_models() if direction in model_class(name).directions]


def build(
    name: str, choices: dict[str, Any], vocabulary: Vocabulary, label_sets: Mapping[str, LabelSet] | None = None
) -> Model:
    """Build a new model. `choices` are fields of its config; the error for a wrong field lists the valid ones.

    `label_sets` are available to it by name, in addition to the registered ones.
    """
    from listenwell.configuration import ConfigError, instantiate
    from listenwell.labels.sets import own_label_sets

    cls = model_class(name)
    config: Any = instantiate(cls.Config, {**entry(name).choices, **choices}, f"model {name}")
    try:
        with own_label_sets(label_sets or {}):
            return cls(cls.complete(config), vocabulary)
    except ValueError as problem:  # incompatible sizes
        raise ConfigError(f"model {name}: {problem}") from problem
