"""Problems of the architectures in `transformers`, in the sizes of their default configurations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

from memplan_lab.corpus.recipe import Network, Recipe
from memplan_lab.extras import require

if TYPE_CHECKING:
    from memplan_lab.corpus.runs import Ready

__all__ = ["FAMILIES", "RATE", "Setting", "Task", "build", "iterate_models"]

Task = Literal["causal", "masked", "seq2seq", "speech", "audio", "image", "both"]

# By task: the class that builds the model and its head.
_HEADS: dict[Task, str] = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "speech": "AutoModelForSpeechSeq2Seq",
    "audio": "AutoModelForCTC",
    "image": "AutoModelForImageClassification",
    "both": "AutoModel",
}

_MODELS: dict[Task, str] = {
    "causal": """
        gpt2 gpt_neo gpt_neox gptj opt bloom codegen xglm openai-gpt ctrl falcon
        llama mistral qwen2 qwen3 gemma gemma2 gemma3_text phi phi3 stablelm olmo olmo2 cohere
        starcoder2 granite persimmon glm smollm3 mpt
        mamba mamba2 recurrent_gemma mixtral qwen2_moe olmoe gpt_oss
    """,
    "masked": """
        bert roberta albert distilbert electra deberta-v2 mpnet convbert squeezebert
        mobilebert camembert xlm-roberta rembert roformer nystromformer megatron-bert funnel
        fnet ibert modernbert big_bird longformer layoutlm tapas data2vec-text ernie xlm
    """,
    "seq2seq": "t5 mt5 bart mbart pegasus marian blenderbot led longt5 umt5 prophetnet m2m_100",
    "speech": "whisper",
    "audio": "wav2vec2 hubert wavlm sew unispeech data2vec-audio",
    "image": """
        vit deit beit swin swinv2 convnext convnextv2 dinov2 pvt pvt_v2 segformer
        mobilevit mobilevitv2 mobilenet_v1 mobilenet_v2 efficientnet resnet regnet levit cvt
        poolformer focalnet bit vit_msn data2vec-vision swiftformer hiera
    """,
    "both": "clip siglip blip altclip chinese_clip groupvit",
}

# These models have only an attention of their own, or none, so that there is no choice.
_EAGER_ONLY = """
gpt_neo gptj bloom xglm codegen ctrl openai-gpt tapas gpt_oss mpt mamba mamba2 gemma2
wavlm blip groupvit recurrent_gemma xlm fnet funnel nystromformer convbert squeezebert mobilebert
roformer ibert rembert deberta-v2 mpnet big_bird longformer layoutlm megatron-bert prophetnet led
longt5 umt5 mt5 t5
"""
# These models keep no cache: they compute all tokens again for each new one.
_WITHOUT_CACHE = ("openai-gpt",)
# These models cannot compute activations again in the backward pass: they keep them all.
_WITHOUT_CHECKPOINTS = ("ctrl", "openai-gpt")

_BATCHES = (1, 2, 4, 8, 16, 32, 64)
_TOKENS = (128, 256, 64, 512, 384)
_SECONDS = (2, 5, 10)
RATE = 16_000  # samples of a second
_ANSWER = 64  # tokens of the answer, of models that read one sequence and write another
_GENERATED = 4
_PARTITIONS = ("ddp", "overlap", "category")


@dataclass(frozen=True)
class Setting:
    """How a model is built and called."""

    # batch, size: The size is in tokens, pixels or samples.
    batch: int
    size: int
    dtype: str  # "float32" or "bfloat16"
    # "sdpa" or "eager", the names of the library: one operator, or several; empty where there is no
    # choice.
    attention: str = ""
    checkpoint: bool = False  # whether layers are computed again in the backward pass

    @property
    def variant(self) -> str:
        """The settings in words, without the type of elements and the input."""
        return "checkpointed" if self.checkpoint else self.attention


def build(model: str, task: Task, setting: Setting) -> Ready:
    """Return a network of transformers with its input and its loss."""
    from memplan_lab.corpus.runs import Ready
    from memplan_lab.corpus.weightless import Weightless

    torch = require("torch", extra="corpus")
    transformers = require("transformers", extra="corpus")
    config = transformers.AutoConfig.for_model(model)
    for name in _RANDOM:
        if hasattr(config, name):
            setattr(config, name, type(getattr(config, name))(0))
    config.architectures = config.architectures or []  # some heads iterate over it
    head = getattr(transformers, _HEADS[task])
    with Weightless():
        chosen = {"attn_implementation": setting.attention} if setting.attention else {}
        module = head.from_config(config, **chosen)
    dtype = getattr(torch, setting.dtype)
    module.to(device="meta", dtype=dtype)
    if setting.checkpoint:
        module.gradient_checkpointing_enable()
    with torch.device("meta"):
        given = _inputs(torch, config, task, setting, dtype)
    return Ready(module, kwargs=given, loss=_loss)


# Layers and steps of time that are left out by chance are kept, as no shape says which go.
_RANDOM = (
    *("layerdrop", "encoder_layerdrop", "decoder_layerdrop"),
    *("mask_time_prob", "mask_feature_prob", "apply_spec_augment"),
)


def _inputs(torch: Any, config: Any, task: Task, setting: Setting, dtype: Any) -> dict[str, Any]:
    batch, size = setting.batch, setting.size

    def tokens(count: int) -> Any:
        return torch.empty(batch, count, dtype=torch.long)

    def pixels(side: int) -> Any:
        return torch.empty(batch, 3, side, side, dtype=dtype)

    if task == "seq2seq":
        return {"input_ids": tokens(size), "decoder_input_ids": tokens(_ANSWER)}
    if task == "speech":
        frames = 2 * config.max_source_positions
        heard = torch.empty(batch, config.num_mel_bins, frames, dtype=dtype)
        return {"input_features": heard, "decoder_input_ids": tokens(_ANSWER)}
    if task == "audio":
        return {"input_values": torch.empty(batch, size, dtype=dtype)}
    if task == "image":
        return {"pixel_values": pixels(size)}
    if task == "both":
        side = config.vision_config.image_size
        return {"input_ids": tokens(_ANSWER), "pixel_values": pixels(side)}
    return {"input_ids": tokens(size)}


def _loss(result: Any) -> Any:
    """Return the cross entropy of scores; for a result without scores, the mean of squares."""
    torch = require("torch", extra="corpus")
    scores = getattr(result, "logits", None)
    if scores is None:
        return result[0].float().square().mean()
    scores = scores.float().flatten(0, -2)
    right = torch.empty(scores.shape[0], dtype=torch.long, device=scores.device)
    return torch.nn.functional.cross_entropy(scores, right)


def _setting(task: Task, turn: int, **options: Any) -> Setting:
    """Return one of many settings, so that neighbouring turns differ."""
    batch, dtype = _BATCHES[turn % len(_BATCHES)], ("float32", "bfloat16")[turn % 2]
    if task == "audio":
        size = RATE * _SECONDS[turn % len(_SECONDS)]
    elif task == "speech":
        size = 30 * RATE  # such models always make their features of 30 seconds
    elif task in ("image", "both"):
        size = 224
    else:
        size = _TOKENS[turn % len(_TOKENS)]
    return Setting(batch, size, dtype, **options)


def _network(model: str, task: Task, turn: int, **options: Any) -> Network:
    setting = _setting(task, turn, **options)
    make = partial(build, model, task, setting)
    return Network(
        *("transformers", model, make, setting.batch, setting.size, setting.dtype),
        variant=setting.variant,
    )


def iterate_models() -> Iterator[tuple[Task, str]]:
    """Yield the models, each with what it is for."""
    for task, names in _MODELS.items():
        for model in names.split():
            yield task, model


def _each() -> Iterator[tuple[int, Task, str]]:
    """Yield all models, each with a number of its own, which no added or removed one changes."""
    for task, model in iterate_models():
        yield crc32(model.encode()), task, model


def _attentions(task: Task, model: str) -> tuple[str, ...]:
    """Return the kinds of attention that a model can have, as the library calls them."""
    if task == "image":
        return ("",)
    return ("eager",) if model in _EAGER_ONLY.split() else ("sdpa", "eager")


def _inference() -> Iterator[Recipe]:
    for turn, task, model in _each():
        for attention in _attentions(task, model):
            network = _network(model, task, turn + 3 * (attention == "eager"), attention=attention)
            yield network.recipe("transformers-inference", "inference")


def _generation() -> Iterator[Recipe]:
    for turn, task, model in _each():
        if task == "causal" and model not in _WITHOUT_CACHE:
            network = _network(model, task, turn + 2, attention=_attentions(task, model)[0])
            yield network.recipe("transformers-generation", "generation", tokens=_GENERATED)


def _training() -> Iterator[Recipe]:
    for turn, task, model in _each():
        attentions = _attentions(task, model)
        gradients = ("kept", "released")[turn % 2]
        network = _network(model, task, turn + 4, attention=attentions[0])
        yield network.recipe("transformers-training", "training", gradients=gradients)
        if task == "causal" and model not in _WITHOUT_CHECKPOINTS:
            network = _network(model, task, turn + 5, attention=attentions[-1], checkpoint=True)
            yield network.recipe("transformers-training", "training", gradients="kept")


def _streams() -> Iterator[Recipe]:
    for turn, task, model in _each():
        if turn % 3 == 0:
            partition = _PARTITIONS[turn // 3 % len(_PARTITIONS)]
            network = _network(model, task, turn + 1, attention=_attentions(task, model)[0])
            yield network.recipe(
                "transformers-streams", "streams", partition=partition, optimizer="adam"
            )


FAMILIES = {
    "transformers-inference": _inference,
    "transformers-generation": _generation,
    "transformers-training": _training,
    "transformers-streams": _streams,
}
