from __future__ import annotations

from pathlib import Path
from typing import Literal


def train(
    recipe: str,
    out: Path | None = None,
    resume: bool = False,
    set: list[str] | None = None,
    threads: int = 0,
    save_every: float = 300.0,
    quiet: bool = False,
    precision: Literal["float32", "bf16"] | None = None,
    device: Literal["auto", "cpu"] = "auto",
) -> None:
    """Train a system from a recipe.

    A recipe is data + model + stages + decoding: a shipped one by name (`listenwell models --recipes` lists them)
    or a YAML file. The run's folder has the log, the checkpoints and the trained system in best/;
    talk to it with `listenwell chat FOLDER`, score it with `listenwell evaluate FOLDER`.
    Several processes share each batch if started by Accelerate:
    `accelerate launch --multi_gpu --num_processes 2 -m listenwell train RECIPE`, with `--device cpu` if
    there is no GPU.

    Args:
        recipe: Name of a shipped recipe, or path of a YAML file.
        out: Folder of the run; runs/RECIPE if not given.
        resume: Continue from the run's last checkpoint as if it had never stopped; start from scratch if there is none.
            The recipe's decoding is read again, even for a finished run, since no weight depends on it.
        set: A change to the recipe, such as stages.0.epochs=2 or data.source=my.jsonl; may be given several times.
        threads: CPU threads; 0 for all cores.
        save_every: Seconds between checkpoints.
        quiet: Print only problems.
        precision: bf16 computes the layers in bfloat16, which is faster on some machines.
        device: The GPU if there is one, or the CPU.
    """
    import shlex

    import torch

    from listenwell.commands.numbers import at_least
    from listenwell.training import load_recipe
    from listenwell.training.processes import is_main
    from listenwell.training.run import train as run
    from listenwell.training.signals import Interrupted

    at_least(0, threads=threads, save_every=save_every)
    if threads:
        torch.set_num_threads(threads)
    loaded = load_recipe(recipe, set or ())
    folder = out or Path("runs") / loaded.name
    try:
        run(loaded, folder, resume=resume, quiet=quiet, save_every=save_every, precision=precision, device=device)
    except Interrupted:
        same = "".join(f" --set {shlex.quote(change)}" for change in set or ())
        same += f" --precision {precision}" if precision else ""
        same += f" --device {device}" if device != "auto" else ""
        if is_main():
            command = f"listenwell train {recipe} --out {folder} --resume{same}"
            print(f"\nStopped; everything is saved. Continue with: {command}")
        raise SystemExit(130) from None
