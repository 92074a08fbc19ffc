"""Tests of the networks that are trained, and of the suite of their training steps."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from memplan_lab.bench.models import training  # noqa: E402
from memplan_lab.bench.models.tokens import bert  # noqa: E402
from memplan_lab.bench.models.training import TRAINED, MaskedWords, Translator  # noqa: E402
from memplan_lab.bench.suites import cases  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def bert_parameters(layers: int, width: int, inner: int) -> int:
    """Count the parameters of a BERT: embeddings, layers, and the head with the shared words."""
    embeddings = (30522 + 512) * width + 2 * width
    attention = 4 * width * (width + 1) + 2 * width
    dense = 2 * width * inner + width + inner + 2 * width
    head = width * (width + 1) + 2 * width + 30522
    return embeddings + layers * (attention + dense) + head


def pangu_parameters(layers: int, width: int) -> int:
    """Count the parameters of one of eight devices: words, norms, attention, dense layers."""
    attention = 4 * width * width // 8 + 3 * width // 8 + width
    dense = width * width + width // 2 + width
    return 5_000 * width + layers * (4 * width + attention + dense) + 2 * width


# YOLOv3 is known with one class; the ResNet for faces without its classes.
# Of the transformer the paper says 65 million; words are shared, places are no parameters.
PARAMETERS = {
    "bert_base": bert_parameters(12, 768, 3072),
    "bert_large": bert_parameters(24, 1024, 4096),
    "tiny_bert": bert_parameters(4, 312, 1200),
    "resnet50": 25_557_032,
    "mobilenet_v2": 3_504_872,
    "transformer": 37_000 * 512 + 6 * (3_152_384 + 4_204_032),
    "bert_nezha": bert_parameters(24, 1024, 4096),
    "face_recognition": 65_156_160 + 513 * 10_000,
    "face_detection": 61_523_734,
    "pangu_2.6b": pangu_parameters(32, 2560),
    "pangu_8b": pangu_parameters(40, 4096),
    "pangu_13b": pangu_parameters(40, 5120),
}


@pytest.mark.parametrize("name", TRAINED)
def test_sizes(name: str) -> None:
    """Tests that a model in training has the parameters that it is known for, and no memory."""
    model, args = TRAINED[name]()
    assert sum(parameter.numel() for parameter in model.parameters()) == PARAMETERS[name]
    assert model.training
    fake = torch._subclasses.fake_tensor.FakeTensor
    assert all(isinstance(one, fake) for one in (*model.parameters(), *args))


def small() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return small ones with weights."""
    torch.manual_seed(0)
    words = [torch.randint(0, 50, (2, 6)) for _ in range(3)]
    masked = MaskedWords(bert(1, 24, 2, 40), 24)
    return {
        "masked": (masked, (words[0], words[1] % 6, words[2])),
        "translator": (Translator(1, 16, 2, 50), tuple(words)),
    }


@pytest.mark.parametrize("name", ["masked", "translator"])
def test_models_compute(name: str) -> None:
    """Tests that a loss is finite and positive, and that every parameter gets a gradient."""
    model, args = small()[name]
    loss = model(*args)
    assert loss.isfinite()
    assert loss > 0
    loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_translator_does_not_look_ahead() -> None:
    """Tests that the loss of the first words depends on the source, not on later words."""
    model, (source, target, wanted) = small()["translator"]
    model.eval()
    wanted[:, 1:] = -100  # the loss ignores these
    loss = model(source, target, wanted)
    later = target.clone()
    later[:, 1:] = 0
    assert torch.allclose(loss, model(source, later, wanted))
    assert not torch.allclose(loss, model(source.flip(0), target, wanted))


def test_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the suite has the six networks on their streams, and that a case has groups."""
    found = cases("streams")
    names = [case.name for case in found]
    six = ("bert_base", "bert_large", "tiny_bert", "resnet50", "mobilenet_v2", "transformer")
    expected = [f"{name}-{how}" for name in six for how in ("ddp", "overlap", "category")]
    assert names == [*expected, "pangu-like"]
    monkeypatch.setitem(training.TRAINED, "transformer", lambda: small()["translator"])
    case = found[names.index("transformer-overlap")]
    problem = case.make()
    assert problem.has_groups
    assert not problem.has_alignment
    assert (problem.size % 512 == 0).all()
