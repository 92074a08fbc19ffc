"""Tests of the well-known networks."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from memplan_lab.bench.models import MODELS, NETWORKS, UNet, dcgan, resnet  # noqa: E402

pytestmark = pytest.mark.slow

# Parameters as published, or as the reference implementations count them; BERT without the
# pooler and the token types, GPT-2 one of its twelve blocks.
KNOWN = {
    "resnet18": (11_689_512, (1, 1000)),
    "resnet50": (25_557_032, (1, 1000)),
    "mobilenet_v2": (3_504_872, (1, 1000)),
    "squeezenet": (1_248_424, (1, 1000)),
    "dcgan": (3_576_704, (1, 3, 64, 64)),
    "unet": (31_037_698, (1, 2, 256, 256)),
    "bert_base": (109_482_240 - 768 * 769 - 2 * 768, (1, 128, 768)),
    "gpt2_block": (7_087_872, (1, 1024, 768)),
    "encoder": (6 * 3_152_384, (1, 128, 512)),
}


def test_models_are_those_that_are_known() -> None:
    """Tests that every model of the table is checked here."""
    assert set(MODELS) == set(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_sizes(name: str) -> None:
    """Tests that a model has the parameters and the output that it is known for."""
    parameters, shape = KNOWN[name]
    module, args = MODELS[name]()
    assert sum(parameter.numel() for parameter in module.parameters()) == parameters
    assert not module.training
    assert {tensor.device.type for tensor in (*module.parameters(), *args)} == {"meta"}
    assert tuple(module(*args).shape) == shape


def test_models_compute() -> None:
    """Tests that models run on real tensors: outputs follow inputs, and gradients arrive."""
    torch.manual_seed(0)
    net = UNet(3, 2, width=4, depth=2).eval()
    image = torch.randn(2, 3, 16, 16)
    scores = net(image)
    assert scores.shape == (2, 2, 16, 16)
    assert torch.equal(net(image.flip(0)).flip(0).argmax(1), scores.argmax(1))
    small = resnet((1, 1, 1, 1), bottleneck=True)
    small(torch.randn(2, 3, 32, 32)).sum().backward()
    assert all(parameter.grad is not None for parameter in small.parameters())


# Parameters of the networks as they are published, with a thousand (or 21) classes.
PARAMETERS = {
    "squeezenet": 1_248_424,
    "vgg16": 138_357_544,
    "googlenet": 6_624_904,
    "wide_resnet50": 68_883_240,
    "inception_v3": 23_834_568,
    "regnet_x_8gf": 39_572_648,
    "alexnet": 61_100_840,
    "resnext50": 25_028_904,
    "densenet121": 7_978_856,
    "efficientnet_b0": 5_288_548,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_networks_have_the_published_parameters(name: str) -> None:
    """Tests that a network is that of its paper, by the number of its parameters."""
    with torch.device("meta"):
        module, _ = NETWORKS[name](1, 128)
    assert sum(parameter.numel() for parameter in module.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", ["fcn", "deeplabv3"])
def test_segmentation_has_scores_for_every_pixel(name: str) -> None:
    """Tests the shape, and that dilated stages keep an eighth of the size."""
    with torch.device("meta"):
        module, (x,) = NETWORKS[name](2, 64)
    assert module.body(x).shape == (2, 2048, 8, 8)
    assert module.eval()(x).shape == (2, 21, 64, 64)


@pytest.mark.deep
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_have_weights(name: str) -> None:
    """Tests that a network is the same each time, in both halves of a batch, and finite."""
    side = 96 if name == "inception_v3" else 32  # it takes no smaller image
    (module, (x,)), (again, (same,)) = NETWORKS[name](2, side), NETWORKS[name](2, side)
    assert torch.equal(x, same)
    with torch.inference_mode():
        y = module(x)
        assert torch.equal(y, again(same))
        assert torch.allclose(module(x[1:]), y[1:], atol=1e-4)
    assert y.isfinite().all()
    assert y.std() > 0


@pytest.mark.parametrize("side", [8, 32, 128])
def test_the_generator_makes_images_of_a_size(side: int) -> None:
    """Tests that DCGAN's generator grows with its images."""
    with torch.device("meta"):
        assert dcgan(side)(torch.empty(3, 100, 1, 1)).shape == (3, 3, side, side)


def test_causal_attention_does_not_look_ahead() -> None:
    """Tests that a token of the GPT-2 block depends on those before it, and on no later one."""
    from memplan_lab.bench.models import gpt2_block

    torch.manual_seed(0)
    block = gpt2_block(width=16, heads=2).eval()
    x = torch.randn(1, 6, 16)
    changed = x.clone()
    changed[0, 4] += 1
    with torch.no_grad():
        difference = (block(x) - block(changed)).abs().amax(dim=2)[0]
    assert difference[:4].max() == 0
    assert difference[4:].min() > 0


def test_the_benchmark_imports_no_torch() -> None:
    """Tests that torch is imported when models are asked for, not with the benchmark."""
    code = "import sys, memplan_lab.bench; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
