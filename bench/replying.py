"""Which engine is fastest here at writing and scoring candidate replies: python bench/replying.py [MODEL]

Runs the same weights in transformers, in our own lean loop (float32, float16, bfloat16, 8 bits), in CTranslate2
(8 bits) and in llama.cpp (the 4-bit weights of the package that ships SmolLM2, or --gguf; it writes, but cannot score a
given text). Engines that are not installed are skipped with a message. Engines take turns in every round; the output
has the best times and the ratio to transformers. On a machine with other load, OMP_NUM_THREADS=1 and --busy give
comparable times.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import psutil
import torch
from torch import Tensor

from listenwell.backbones.language_model import load_language_model
from listenwell.backbones.llama_engine import LlamaEngine, Product, bf16, fp16, fp32
from listenwell.backbones.locate import SHORT, packed
from listenwell.data import sources
from listenwell.text import Tokenizer, backbone_tokenizer

PROMPT, CONTINUATION, STREAMED = 90, 30, 20
"""Number of tokens in the context, in a reply to score, and in a reply to write."""

Ids = Sequence[int]
Clock = Callable[[], float]


class Engine(Protocol):
    def write(self, prompt: Ids, candidates: int, tokens: int) -> None:
        """Sample `candidates` continuations of a prompt, each of `tokens` tokens."""

    score: Callable[[Ids, Sequence[Ids]], list[float]] | None
    """−log p of each continuation of a prompt; None if not available."""


class Plain:
    """transformers with its cache. The prompt is read once and its cache repeated."""

    def __init__(self, model: Any) -> None:
        self.model = model

    @torch.inference_mode()
    def write(self, prompt: Ids, candidates: int, tokens: int) -> None:
        ids = torch.tensor([prompt])
        cache = None
        if candidates > 1:
            cache = self.model(ids[:, :-1], use_cache=True, logits_to_keep=1).past_key_values
            cache.batch_repeat_interleave(candidates)
        ids = ids.expand(candidates, -1)
        lengths = {"min_new_tokens": tokens, "max_new_tokens": tokens}
        self.model.generate(
            ids, attention_mask=torch.ones_like(ids), past_key_values=cache, do_sample=True, top_k=0, **lengths
        )

    @torch.inference_mode()
    def score(self, prompt: Ids, continuations: Sequence[Ids]) -> list[float]:
        tokens, mask = padded(continuations)
        known = torch.tensor([prompt]).expand(len(tokens), -1)
        reach = tokens.shape[1] + 1
        log_probs = (
            self.model(torch.cat([known, tokens], dim=1), logits_to_keep=reach).logits[:, :-1].log_softmax(dim=-1)
        )
        return (-log_probs.gather(2, tokens[..., None])[..., 0] * mask).sum(dim=1).tolist()


class Lean:
    """Our own loop."""

    def __init__(self, model: LlamaEngine) -> None:
        self.model = model

    @torch.inference_mode()
    def write(self, prompt: Ids, candidates: int, tokens: int) -> None:
        ids = torch.tensor([prompt])
        cache, logits = self.model.prefill(ids, torch.ones_like(ids, dtype=torch.bool), room=tokens)
        if candidates > 1:
            cache, logits = cache.repeat(candidates), logits.repeat(candidates, 1)
        drawn = torch.multinomial(logits.softmax(dim=-1), 1)[:, 0]
        for _ in range(tokens - 1):
            drawn = torch.multinomial(self.model.step(drawn, cache).softmax(dim=-1), 1)[:, 0]

    def score(self, prompt: Ids, continuations: Sequence[Ids]) -> list[float]:
        ids = torch.tensor([prompt])
        cache, _ = self.model.prefill(ids, torch.ones_like(ids, dtype=torch.bool), room=0)
        return self.model.score(cache, *padded(continuations)).tolist()


class Translated:
    """CTranslate2, which needs a converted model folder and tokens as strings."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        import ctranslate2
        from ctranslate2.converters import TransformersConverter

        self.tokenizer = tokenizer
        with tempfile.TemporaryDirectory() as place:
            TransformersConverter(str(folder)).convert(place, quantization="int8", force=True)
            threads = torch.get_num_threads()
            self.model = ctranslate2.Generator(place, compute_type="int8", intra_threads=threads, inter_threads=1)

    def write(self, prompt: Ids, candidates: int, tokens: int) -> None:
        self.model.generate_batch(
            [self._texts(prompt)], max_length=tokens, min_length=tokens, sampling_topk=0,
            num_hypotheses=candidates, include_prompt_in_result=False,
        )  # fmt: skip

    def score(self, prompt: Ids, continuations: Sequence[Ids]) -> list[float]:
        rows = self.model.score_batch([self._texts([*prompt, *tokens]) for tokens in continuations])
        return [-sum(row.log_probs[len(prompt) - 1 :]) for row in rows]

    def _texts(self, ids: Ids) -> list[str]:
        return [self.tokenizer.token(index) for index in ids]


class LlamaCpp:
    """llama.cpp, from the xllamacpp wheel. A prompt is read once for all its continuations."""

    score = None

    def __init__(self, file: Path) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.n_ctx, params.n_parallel, params.kv_unified = 4096, 8, True
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = torch.get_num_threads()
        params.verbosity, params.cache_ram_mib = -1, 0
        self.model = xllamacpp.Server(params)

    def write(self, prompt: Ids, candidates: int, tokens: int) -> None:
        drawn = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "ignore_eos": True, "cache_prompt": False}
        self.model.handle_completions({"prompt": list(prompt), "n": candidates, "n_predict": tokens, **drawn})


def eight_bit(weight: Tensor) -> Product:
    """A linear product with 8-bit weights, one scale per row, and dynamically quantized inputs."""
    scales = weight.abs().amax(dim=1).clamp_min(1e-12).double() / 127
    zeros = torch.zeros(len(weight), dtype=torch.long)
    small = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(small, None)
    return lambda hidden: torch.ops.quantized.linear_dynamic(hidden, packed, True)


def padded(rows: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return tokens, torch.arange(tokens.shape[1]) < lengths[:, None]


def engines(name: str, gguf: Path | None, clock: Clock) -> dict[str, tuple[Engine, float, float]]:
    """By name: the engine, the seconds it took to load, and the megabytes it uses."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    tokenizer = backbone_tokenizer(name)
    _, folder = load_language_model(name)  # warm-up: imports and unpacking are not counted
    makers: dict[str, Callable[[], Engine]] = {
        "transformers": lambda: Plain(load_language_model(name)[0]),
        "lean, fp32": lambda: Lean(LlamaEngine.of(load_language_model(name)[0], fp32)),
        "lean, fp16": lambda: Lean(LlamaEngine.of(load_language_model(name)[0], fp16)),
        "lean, bf16": lambda: Lean(LlamaEngine.of(load_language_model(name)[0], bf16)),
        "lean, 8 bits": lambda: Lean(LlamaEngine.of(load_language_model(name)[0], eight_bit)),
        "CTranslate2": lambda: Translated(folder, tokenizer),
    }
    if gguf is not None:
        makers["llama.cpp"] = lambda: LlamaCpp(gguf)
    loaded = {}
    for label, make in makers.items():
        try:
            with using_memory() as held:
                begun = clock()
                engine = make()
                loaded[label] = (engine, clock() - begun, held)
        except ImportError as problem:
            print(f"{label} is not measured: {problem} (pip install {str(problem.name).partition('.')[0]})")
    return {label: (engine, seconds, held[0]) for label, (engine, seconds, held) in loaded.items()}


@contextmanager
def using_memory():
    held = [0.0]
    before = resident()
    yield held
    held[0] = resident() - before


def resident() -> float:
    """Resident memory in megabytes, after returning freed memory to the system."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return psutil.Process().memory_info().rss / 1e6


def texts(tokenizer: Tokenizer) -> list[list[int]]:
    turns = [turn.text for dialogue in sources.read("shipped") if dialogue.language == "en" for turn in dialogue.turns]
    return [ids for ids in tokenizer.encode_many(turns) if len(ids) > 5]


def perplexity(engine: Engine, tokenizer: Tokenizer, rows: Sequence[Ids]) -> float:
    if engine.score is None:
        return math.nan
    total = sum(engine.score([tokenizer.start], rows[:20]) + engine.score([tokenizer.start], rows[20:]))
    return math.exp(total / sum(map(len, rows)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smollm2", help="a causal language model by name or folder")
    parser.add_argument("--gguf", type=Path, help="the same model as a file for llama.cpp")
    parser.add_argument("--rounds", type=int, default=4, help="how often each time is taken; the best counts")
    parser.add_argument("--busy", action="store_true", help="count the processor's time, not the clock's")
    chosen = parser.parse_args()
    torch.manual_seed(0)
    tokenizer = backbone_tokenizer(chosen.model)
    clock: Clock = time.process_time if chosen.busy else time.perf_counter
    loaded = engines(chosen.model, chosen.gguf or packed(SHORT.get(chosen.model, "")), clock)
    rows = texts(tokenizer)
    quality = {label: perplexity(engine, tokenizer, rows[:40]) for label, (engine, *_) in loaded.items()}
    stream = [index for row in rows for index in row]
    prompt = [tokenizer.start, *stream[: PROMPT - 1]]
    continuations = [stream[at : at + CONTINUATION] for at in range(PROMPT, PROMPT + 4 * CONTINUATION, CONTINUATION)]
    tasks: dict[str, Callable[[Engine], Any]] = {
        "first token": lambda engine: engine.write(prompt, 1, 1),
        "1 stream": lambda engine: engine.write(prompt, 1, STREAMED),
        "4 candidates": lambda engine: engine.write(prompt, 4, STREAMED),
        "8 candidates": lambda engine: engine.write(prompt, 8, STREAMED),
        "scoring 4": lambda engine: engine.score and engine.score(prompt, continuations),
    }
    times = measure({label: engine for label, (engine, *_) in loaded.items()}, tasks, chosen.rounds, clock)
    print(f"{chosen.model}, {torch.get_num_threads()} threads: {PROMPT} tokens of context, {STREAMED} a reply")
    print(f"{'':14}" + "".join(f"{task:>22}" for task in tasks) + f"{'ready':>10}{'memory':>10}{'perplexity':>12}")
    for label, (engine, seconds, held) in loaded.items():
        cells = [cell(engine, task, times[label][task], times["transformers"][task]) for task in tasks]
        said = "—" if engine.score is None else f"{quality[label]:.2f}"
        print(f"{label:14}" + "".join(cells) + f"{seconds:8.1f} s{held:7.0f} MB{said:>12}")


def measure(
    engines: dict[str, Engine], tasks: dict[str, Callable[[Engine], Any]], rounds: int, clock: Clock
) -> dict[str, dict[str, float]]:
    """The best seconds of each engine at each task. Engines take turns, so that a slow moment affects all of them."""
    taken: dict[str, dict[str, list[float]]] = {label: {task: [] for task in tasks} for label in engines}
    for _ in range(rounds):
        for task, do in tasks.items():
            for label, engine in engines.items():
                begun = clock()
                do(engine)
                taken[label][task].append(clock() - begun)
    return {label: {task: min(seconds) for task, seconds in by_task.items()} for label, by_task in taken.items()}


def cell(engine: Engine, task: str, seconds: float, plain: float) -> str:
    """Milliseconds, or tokens per second for tasks that write several, and the speedup over transformers."""
    if task == "scoring 4" and engine.score is None:
        return "—".rjust(22)
    count = {"1 stream": 1, "4 candidates": 4, "8 candidates": 8}.get(task)
    shown = f"{count * STREAMED / seconds:7.0f} tok/s" if count else f"{1000 * seconds:10.0f} ms"
    return f"{shown} ×{plain / seconds:<5.2f}".rjust(22)


if __name__ == "__main__":
    main()
