"""A checkpoint is a folder, written atomically: under a temporary name, synced and renamed. No pickle.

model.safetensors   the weights, float or 8-bit
config.json         the model's name and config, the tokenizer's kind, the encoding, the decoding, its own label sets
tokenizer.json      in the Hugging Face format
meta.json           how it was made: recipe, seed, data hash, metrics, commit
training.safetensors, training.json   only if the run can be resumed: optimizers, random state, position
parts/NAME/         the other parts of a composite system, each a complete checkpoint, such as a labeller of turns
parts/NAME.json     the same for a part that is a separate system next to this folder: {"beside": "its name"}
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from listenwell import __version__
from listenwell.configuration import instantiate
from listenwell.contract import Model
from listenwell.data.batching import EncodingConfig
from listenwell.data.sources import SOURCE_SEPARATOR
from listenwell.decoding import Decoding
from listenwell.labels.sets import LabelSet, is_built_in, read_label_sets
from listenwell.layers.eight_bit import from_eight_bit, to_eight_bit
from listenwell.models import build, current_model, decoding_class
from listenwell.outputs import Owner, write_folder
from listenwell.text import Tokenizer

FORMAT = 1
"""Version of config.json's format; a newer format that this version cannot read has a higher number."""
NEEDED = "config.json, tokenizer.json and model.safetensors"
PARTS = "parts"
BESIDE = "beside"

FILES = frozenset(
    {"model.safetensors", "config.json", "tokenizer.json", "meta.json", "training.safetensors", "training.json", PARTS}
)
OWNER = Owner("train", FILES, lambda folder: any((folder / name).exists() for name in FILES), keeps_others=True)
"""The owner of a checkpoint folder: other files in it are kept."""


class CheckpointError(ValueError):
    """A checkpoint that does not exist or cannot be read."""


@dataclass
class Checkpoint:
    """A model with everything it needs to run, and how it was made."""

    name: str
    model: Model
    tokenizer: Tokenizer
    encoding: EncodingConfig = field(default_factory=EncodingConfig)
    decoding: Decoding = field(default_factory=Decoding)
    meta: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Checkpoint] = field(default_factory=dict)
    """What the system needs in addition to its model, by name."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of its training data; English if not recorded."""
        return tuple(self.meta.get("languages") or ("en",))

    def __post_init__(self) -> None:
        for part in self.model.same_text:
            if part in self.parts and not _same_tokens(self.parts[part].tokenizer, self.tokenizer):
                raise CheckpointError(
                    f"{self.name}: its part {part}, a {self.parts[part].name}, has other tokens than it has itself; "
                    "train both with the same text: and vocabulary:"
                )
        # Here and not where checkpoints are created, so that a model always gets its parts.
        self.model.attach(self.parts)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled in the form that is saved: borrowed weights are located again on unpickling."""
        state = (learned_weights(self.model), self.tokenizer, self.encoding, self.decoding, self.meta, self.parts)
        return _rebuilt, (self.name, asdict(self.model.config), own_sets(self.model), *state)

    def __copy__(self) -> Checkpoint:
        return replace(self)


def _same_tokens(one: Tokenizer, other: Tokenizer) -> bool:
    return one is other or one.backend.get_vocab() == other.backend.get_vocab()


def _rebuilt(
    name: str,
    config: dict[str, Any],
    label_sets: dict[str, LabelSet],
    weights: dict[str, Tensor],
    tokenizer: Tokenizer,
    *rest: Any,
) -> Checkpoint:
    """Rebuild a pickled checkpoint, in another process."""
    model = build(name, config, tokenizer.vocabulary, label_sets)
    put_weights(model, weights)
    model.borrow()
    return Checkpoint(name, model.eval(), tokenizer, *rest)


class HasCheckpoint:
    """Base class of systems and classifiers with a checkpoint: pickling includes that only, since it has the model.

    A model that has run carries hooks and engines that cannot be moved to another process.
    """

    checkpoint: Checkpoint

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "model"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, model=state["checkpoint"].model)

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other


def save(
    checkpoint: Checkpoint,
    folder: Path,
    *,
    eight_bit: bool = False,
    extra: Callable[[Path], None] | None = None,
    previous: Path | None = None,
    owner: Owner = OWNER,
) -> None:
    """Write the folder completely or not at all. `extra` may write more files into it before it is put in place. An
    existing checkpoint moves to `previous`, or is removed; other files stay in the folder."""

    def fill(place: Path) -> None:
        _fill(checkpoint, place, eight_bit)
        if extra is not None:
            extra(place)

    write_folder(folder, fill, owner, previous)


def own_sets(model: Model) -> dict[str, LabelSet]:
    """The label sets of a model that are not built in, by name."""
    return {one.name: one for one in sorted(model.known_label_sets(), key=lambda one: one.name) if not is_built_in(one)}


def learned_weights(model: Model) -> dict[str, Tensor]:
    """All weights except borrowed ones."""
    borrowed = model.borrowed()
    return {name: value.detach().contiguous() for name, value in model.state_dict().items() if name not in borrowed}


def _fill(checkpoint: Checkpoint, place: Path, eight_bit: bool) -> None:
    weights = learned_weights(checkpoint.model)
    write_tensors(place / "model.safetensors", to_eight_bit(weights) if eight_bit else weights)
    checkpoint.tokenizer.save(place / "tokenizer.json")
    config = {
        "format": FORMAT,
        "model": {"name": checkpoint.name, **asdict(checkpoint.model.config)},
        "text": {"kind": checkpoint.tokenizer.kind, "rare_from": checkpoint.tokenizer.rare_from},
        "encoding": asdict(checkpoint.encoding),
        "decoding": asdict(checkpoint.decoding),
    }
    if label_sets := own_sets(checkpoint.model):
        config["label_sets"] = {name: one.to_json() for name, one in label_sets.items()}
    write_json(place / "config.json", config)
    write_json(place / "meta.json", checkpoint.meta)
    for name, part in checkpoint.parts.items():
        inside = place / PARTS / name
        inside.mkdir(parents=True)
        _fill(part, inside, eight_bit)


def load(folder: Path) -> Checkpoint:
    """Load a checkpoint; every error names the file."""
    if not (folder / "config.json").is_file():
        raise CheckpointError(f"{folder}: no checkpoint there (config.json is missing)")
    config = read_config(folder)
    try:
        kind, rare_from = config["text"]["kind"], config["text"].get("rare_from")
        model_config = current_model(config["model"])
        name = model_config.pop("name")
        encoding = instantiate(EncodingConfig, config["encoding"], "encoding")
        decoding = _decoding(name, config["decoding"])
        label_sets = read_label_sets(config.get("label_sets", {}))
    except KeyError as problem:
        raise CheckpointError(f"{folder}/config.json: the key {problem} is missing") from problem
    except (AttributeError, TypeError, ValueError) as problem:
        raise _misread(folder, problem) from problem
    try:
        tokenizer = Tokenizer.load(folder / "tokenizer.json", kind, rare_from)
    except ValueError as problem:  # it names the file
        raise CheckpointError(str(problem)) from problem
    try:
        model = build(name, model_config, tokenizer.vocabulary, label_sets)
    except (AttributeError, ValueError) as problem:
        raise _misread(folder, problem) from problem
    load_weights(model, folder / "model.safetensors")
    model.borrow()
    meta = read_json(folder / "meta.json") if (folder / "meta.json").is_file() else {}
    return Checkpoint(name, model.eval(), tokenizer, encoding, decoding, meta, load_parts(folder))


def set_decoding(folder: Path, decoding: Decoding) -> bool:
    """Change only the decoding of a checkpoint, atomically; returns whether it was different."""
    config, meta = read_json(folder / "config.json"), read_json(folder / "meta.json")
    if load_decoding(folder) == decoding:
        return False
    config["decoding"] = asdict(decoding)
    if "recipe" in meta:
        meta["recipe"]["decoding"] = asdict(decoding)

    def fill(place: Path) -> None:
        for entry in folder.iterdir():
            if entry.name in FILES:  # other files stay where they are
                (shutil.copytree if entry.is_dir() else shutil.copy2)(entry, place / entry.name)
        write_json(place / "config.json", config)
        write_json(place / "meta.json", meta)

    write_folder(folder, fill, OWNER)
    return True


def load_decoding(folder: Path) -> Decoding:
    """Read the decoding options of a checkpoint without loading the system."""
    config = read_config(folder)
    try:
        return _decoding(current_model(config["model"])["name"], config.get("decoding", {}))
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise _misread(folder, problem) from problem


HOUSE_OPTIONS = ("rerank", "lean")
"""Options that every decoding had in older checkpoints and only the house system's has now."""


def _decoding(model: str, options: Mapping[str, Any]) -> Decoding:
    """The options in config.json as an instance of the model's decoding class."""
    cls = decoding_class(model)
    known = {f.name for f in fields(cls)}
    own_options = {key: value for key, value in options.items() if key in known or key not in HOUSE_OPTIONS}
    return instantiate(cls, own_options, "decoding")


def read_config(folder: Path) -> dict[str, Any]:
    """Read the config.json of a checkpoint, if this version knows its format."""
    config = read_json(folder / "config.json")
    form = config.get("format", FORMAT)
    if not isinstance(form, int) or form > FORMAT:
        raise CheckpointError(
            f"{folder}/config.json: its format is {form!r}, expected at most {FORMAT}: it was written by a newer "
            f"listenwell than {__version__}; update (pip install -U listenwell)"
        )
    return config


def _misread(folder: Path, problem: Exception) -> CheckpointError:
    newer = f"; was it written by a newer listenwell than {__version__}?" if "unknown" in str(problem) else ""
    return CheckpointError(f"{folder}/config.json: {problem}{newer}")


def load_parts(folder: Path) -> dict[str, Checkpoint]:
    """Load the parts inside a checkpoint's folder, and those next to it."""
    parts = {place.name: load(place) for place in sorted((folder / PARTS).glob("*/"))}
    for reference in sorted((folder / PARTS).glob("*.json")):
        reference_data = read_json(reference)
        if not isinstance(reference_data.get(BESIDE), str):
            raise CheckpointError(f"{reference}: the key {BESIDE!r} is missing, which names a folder beside {folder}")
        parts[reference.stem] = load(_beside(folder, reference_data[BESIDE]))
    return parts


def _beside(folder: Path, name: str) -> Path:
    """The system that a part refers to: next to the folder, or else wherever weights are installed."""
    from listenwell.weights import how_to_install, shipped

    beside = folder.parent / name
    if (beside / "config.json").is_file():
        return beside
    if (elsewhere := shipped().get(name)) is not None:
        return elsewhere
    if install_hint := how_to_install(name):
        raise CheckpointError(f"{folder.name} needs {install_hint}")
    return beside  # loading it reports that there is none


def same_training(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two checkpoints come from the same training run, by their metas: weights differ once stored in 8 bits."""
    known = bool(one.get("begun"))
    return known and all(one.get(key) == other.get(key) for key in ("recipe", "seed", "data", "begun", "commit"))


def learned_from(meta: Mapping[str, Any]) -> list[str]:
    """The data sources that a checkpoint with this meta was trained on, including those of its starting point."""
    stages = meta.get("recipe", {}).get("stages", ())
    streams = [stream.get("source") for stage in stages for stream in stage.get("streams", {}).values()]
    sources = [*meta.get("start", {}).get("data", ()), meta.get("data", {}).get("source"), *streams]
    return list(dict.fromkeys(name for source in sources if source for name in source.split(SOURCE_SEPARATOR)))


def load_weights(model: Model, path: Path) -> None:
    weights = from_eight_bit(read_tensors(path))
    try:
        put_weights(model, weights)
    except RuntimeError as problem:
        message = f"{path}: its weights do not fit {_misfit(model, weights)}; are the files of one checkpoint?"
        raise CheckpointError(message) from problem


def _misfit(model: Model, weights: Mapping[str, Tensor]) -> str:
    """What the weights do not fit, with the first mismatch."""
    expected = {name: weight for name, weight in model.state_dict().items() if name not in model.borrowed()}
    other = [name for name in expected if name in weights and weights[name].shape != expected[name].shape]
    words = model.vocabulary.size
    for name in other:
        actual, wanted = weights[name].shape, expected[name].shape
        if wanted[:1] == (words,) and actual[1:] == wanted[1:]:
            return f"tokenizer.json: {name} is for {actual[0]:,} tokens, and the tokenizer has {words:,}"
    missing = [name for name in expected if name not in weights]
    beyond = [name for name in weights if name not in model.state_dict()]
    problems = [f"{name} is {_size(weights[name])}, expected {_size(expected[name])}" for name in other]
    problems += [f"{name} is missing" for name in missing] + [f"{name} is not of it" for name in beyond]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"the model in config.json: {problems[0]}{more}"


def _size(weight: Tensor) -> str:
    return " × ".join(map(str, weight.shape)) or "one number"


RENAMED_WEIGHTS = {"worth": "label_scale", "doubt": "label_offset"}
"""Weight names in older checkpoints, mapped to today's names."""


def put_weights(model: Model, weights: dict[str, Tensor]) -> None:
    weights = {RENAMED_WEIGHTS.get(name, name): weight for name, weight in weights.items()}
    mismatch = model.load_state_dict(weights, strict=False)
    if mismatch.unexpected_keys or set(mismatch.missing_keys) - model.borrowed():
        model.load_state_dict(weights)  # raises an error that says what is wrong


def read_tensors(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise CheckpointError(f"{path}: is missing; a checkpoint has {NEEDED}")
    try:
        return load_file(path)
    except (SafetensorError, OSError) as problem:
        way_out = f"it has {path.stat().st_size:,} bytes and is cut short or damaged; copy it again"
        raise CheckpointError(f"{path}: cannot be read as safetensors ({problem}): {way_out}") from problem


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    try:
        save_file(tensors, path)
        path.chmod(0o644)  # safetensors makes files readable by the owner only; shipped files are for everybody
    except SafetensorError as problem:  # raised for a full disk, among others
        raise OSError(f"{path}: {problem}") from problem


def read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as problem:
        raise CheckpointError(f"{path}: is missing") from problem
    except OSError as problem:
        raise CheckpointError(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    except ValueError as problem:
        raise CheckpointError(f"{path}: cannot be read as JSON ({problem}): it is cut short or damaged") from problem
    if not isinstance(data, dict):
        raise CheckpointError(f"{path}: a JSON object expected, found {type(data).__name__}")
    return data


def write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
