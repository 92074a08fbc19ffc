"""The graphs of the suite `orders`: operators of real networks, their waits and storages.

Networks are recorded with one image or sentence, and trained with two. The columns are those of
eager mode: an operator in place touches the same storage again, and keeps its place among the
operators that touch it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from memplan.levers.rewrite import reorder
from memplan.problem import OrderProblem
from memplan.programs.sources import Loaded
from memplan_lab.bench.orders import Case
from memplan_lab.corpus import files, language, vision
from memplan_lab.corpus.building import Failure
from memplan_lab.corpus.recording import record
from memplan_lab.corpus.runs import Ready, record_inference, record_training
from memplan_lab.corpus.shapes import order_of
from memplan_lab.corpus.weightless import Weightless
from memplan_lab.extras import require

__all__ = ["LARGEST", "iterate_recipes", "record_all"]

LARGEST = 25_000  # operators

# Architectures with branches, so that orders differ, beside those of the corpus; side of images.
_BRANCHED = """
pnasnet5large:331 nasnetalarge:331 hrnet_w18_small:224 hrnet_w30:224 hrnet_w40:224 hrnet_w44:224
hrnet_w64:224 densenet161:224 densenet169:224 densenet201:224 densenet264d:224 dla102x2:224
dla46x_c:224 dla60_res2net:224 dla102:224 dpn48b:224 dpn98:224 dpn131:224 res2net101d:224
res2net50_26w_8s:224 res2next50:224 inception_resnet_v2:299 inception_v3:299 inception_v4:299
xception71:299 vovnet57a:224 ese_vovnet39b:224 hgnet_base:224 hgnetv2_b6:224 cs3sedarknet_x:224
"""
_SIDE = 224
_TRAINED_EVERY = 3  # of the models that the corpus has, besides all of the above
_TOKENS = 128


def record_all(
    limit: int | None = None, on_made: Callable[[int, int, str], object] | None = None
) -> tuple[list[Case], list[Failure]]:
    """Return the graphs, and the recipes that could not be made or are too large."""
    recipes = list(iterate_recipes())
    if limit is not None and limit < len(recipes):
        recipes = [recipes[at * len(recipes) // limit] for at in range(limit)]
    made: dict[str, Case] = {}  # by fingerprint: one of each
    failures = []
    for at, (name, make) in enumerate(recipes):
        try:
            problem = make()
        except Exception as error:  # a library may raise anything for one of its networks
            reason = str(error).strip().partition("\n")[0] or "no reason given"
            failures.append(Failure(name, f"{type(error).__name__}: {reason}"))
        else:
            if len(problem) > LARGEST:
                failures.append(Failure(name, f"it has {len(problem):,} operators"))
            else:
                problem = replace(problem, operators=(), storages=())
                way = name.rpartition("-")[2]
                family = way if way in ("inference", "training") else "files"
                made.setdefault(problem.fingerprint, Case(name, family, problem))
        if on_made is not None:
            on_made(at + 1, len(recipes), name)
    return list(made.values()), failures


def iterate_recipes() -> Iterator[tuple[str, Callable[[], OrderProblem]]]:
    """Yield the names of all graphs, and what makes each, which fails as its library does."""
    branched = [text.partition(":") for text in _BRANCHED.split()]
    models = {name: int(side) for name, _, side in branched}
    every = dict(vision.iterate_models())
    for name, side in {**every, **models}.items():
        make = partial(vision.build, name, side=side or _SIDE)
        yield f"timm-{name}-inference", partial(_infer, partial(make, 1))
    for name, side in {**dict(list(every.items())[::_TRAINED_EVERY]), **models}.items():
        make = partial(vision.build, name, side=side or _SIDE)
        yield f"timm-{name}-training", partial(_train, partial(make, 2))
    for number, (task, name) in enumerate(language.iterate_models()):
        setting = language.Setting(1, _size(task), "float32", "" if task == "image" else "eager")
        make = partial(language.build, name, task, setting)
        yield f"transformers-{name}-inference", partial(_infer, make)
        if number % _TRAINED_EVERY == 0:
            yield f"transformers-{name}-training", partial(_train, make)
    for name, call in _DIFFUSION.items():
        yield f"diffusers-{name}-inference", partial(_infer, partial(_diffusion, name, *call))
        yield f"diffusers-{name}-training", partial(_train, partial(_diffusion, name, *call))
    yield f"transformers-gpt2-{_LAYERS}-layers-adam-training", _train_deep
    for project, file, read in files.iterate_files():
        path = Path(file)
        yield f"{project}-{path.stem.removeprefix('light_')}-{path.suffix[1:]}", partial(_of, read)


def _size(task: language.Task) -> int:
    return {"image": _SIDE, "both": _SIDE, "audio": 2 * language.RATE}.get(task, _TOKENS)


def _infer(build: Callable[[], Any]) -> OrderProblem:
    return order_of(record_inference(build()))


def _train(build: Callable[[], Any]) -> OrderProblem:
    return order_of(record_training(build(), "kept"))


def _of(read: Callable[[], Loaded]) -> OrderProblem:
    return reorder(read(), states=1).problem


# By class of diffusers: options, and shapes of the arguments; one of no dimensions is a number.
_DIFFUSION: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "UNet2DConditionModel": (
        {},
        {"sample": (1, 4, 64, 64), "timestep": (), "encoder_hidden_states": (1, 77, 1280)},
    ),
    "ControlNetModel": (
        {},
        {
            "sample": (1, 4, 64, 64),
            "timestep": (),
            "encoder_hidden_states": (1, 77, 1280),
            "controlnet_cond": (1, 3, 512, 512),
        },
    ),
    "UNet2DModel": ({}, {"sample": (1, 3, 64, 64), "timestep": ()}),
    "SD3Transformer2DModel": (
        {},
        {
            "hidden_states": (1, 16, 64, 64),
            "encoder_hidden_states": (1, 154, 4096),
            "pooled_projections": (1, 2048),
            "timestep": (1,),
        },
    ),
    "AutoencoderKL": (
        {
            "down_block_types": ("DownEncoderBlock2D",) * 4,
            "up_block_types": ("UpDecoderBlock2D",) * 4,
            "block_out_channels": (128, 256, 512, 512),
            "layers_per_block": 2,
        },
        {"sample": (1, 3, 512, 512)},
    ),
    "VQModel": (
        {
            "down_block_types": ("DownEncoderBlock2D",) * 3,
            "up_block_types": ("UpDecoderBlock2D",) * 3,
            "block_out_channels": (128, 256, 512),
            "layers_per_block": 2,
        },
        {"sample": (1, 3, 256, 256)},
    ),
}


def _diffusion(name: str, options: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> Ready:
    torch, diffusers = (require(library, extra="corpus") for library in ("torch", "diffusers"))
    with Weightless():
        module = getattr(diffusers, name)(**options)
    given = {key: torch.empty(shape, device="meta") for key, shape in shapes.items()}
    if given.get("timestep") is not None:
        given["timestep"] = given["timestep"].long()
    return Ready(
        module.to("meta"),
        kwargs={**given, "return_dict": False},
        loss=lambda result: sum(each.float().square().mean() for each in _tensors(result)),
    )


def _tensors(result: Any) -> Iterator[Any]:
    """Yield the tensors of nested tuples."""
    if isinstance(result, (list, tuple)):
        for each in result:
            yield from _tensors(each)
    else:
        yield result


_LAYERS = 102


def _train_deep() -> OrderProblem:
    """Return a step of training with the updates of Adam, each parameter by itself."""
    torch = require("torch", extra="corpus")
    transformers = require("transformers", extra="corpus")
    config = transformers.AutoConfig.for_model("gpt2", n_layer=_LAYERS)
    with Weightless():
        module = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    module.to("meta").train()
    words = torch.empty(1, _TOKENS, dtype=torch.long, device="meta")
    optimizer = torch.optim.Adam(module.parameters(), foreach=False)

    def run() -> Any:
        module(input_ids=words, labels=words).loss.backward()
        optimizer.step()
        return optimizer.state

    return order_of(record(run, chain(module.parameters(), module.buffers())))
