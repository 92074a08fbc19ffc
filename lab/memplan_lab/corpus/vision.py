"""Problems of the architectures in `timm`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from memplan_lab.corpus.recipe import Network, Recipe
from memplan_lab.extras import require

if TYPE_CHECKING:
    from memplan_lab.corpus.runs import Ready

__all__ = ["FAMILIES", "build", "iterate_models"]

# These are some architectures of each module of timm, small and large, for images of any side:
_FREE = """
caformer_s18 convformer_s18 convmixer_1536_20 convmixer_768_32 convnext_atto_ols convnext_pico_ols
convnext_tiny convnext_tiny_hnf convnextv2_base convnextv2_small cpubone_b1_dwnorm cs3darknet_m
csatv2 cspdarknet53 cspnext_m cspnext_tiny cspresnext50 davit_base_fl davit_tiny densenet121
densenetblur121d dla169 dla34 dla60_res2next dpn68 dpn92 eca_nfnet_l1 ecaresnet26t ecaresnetlight
edgenext_small edgenext_x_small efficientnet_b0 efficientnet_b2 efficientnet_el efficientnet_lite2
efficientnetv2_rw_m efficientvim_m2 efficientvit_b1 efficientvit_l1 ese_vovnet19b_slim
ese_vovnet99b fasternet_t1 fastvit_sa36 fbnetv3_d focalnet_base_srf focalnet_tiny_lrf
gcresnext50ts ghostnet_100 ghostnet_130 ghostnetv3_100 seresnet50 hardcorenas_b hgnet_tiny
hgnetv2_b4 hrnet_w18 hrnet_w18_small_v2 hrnet_w32 hrnet_w48 iformer_s inception_next_base
inception_next_tiny inception_resnet_v2 inception_v3 inception_v4 lcnet_050 lcnet_150
lcnetv2_small lowformer_b15 mambaout_base_short_rw mambaout_small mixnet_m mnasnet_100
mnasnet_small mobilenetv1_100 mobilenetv2_100 mobilenetv2_110d mobilenetv3_large_100
mobilenetv3_small_075 mobilenetv4_conv_small mobilenetv4_hybrid_medium mobileone_s4 mobilevit_s
mobilevit_xxs mobilevitv2_125 nextvit_base nextvit_small nfnet_f0 poolformer_s12 poolformer_s36
poolformerv2_s24 pvt_v2_b1 pvt_v2_b4 rdnet_base rdnet_tiny regnetx_002 regnetx_008 regnetx_064
regnety_002 regnety_008_tv regnety_032 regnety_064 regnety_160 regnetz_005 repghostnet_058
repghostnet_130 repvgg_a0 repvgg_b1 repvit_m1_0 repvit_m2_3 res2net50_14w_8s res2net50_48w_2s
resnest14d resnest50d_1s4x24d resnet101d resnet18 resnet26d resnet33ts resnet34 resnet50 resnet50c
resnetaa34d resnetblur18 resnetv2_101d resnetv2_34 resnetv2_50d resnext101_64x4d resnext26ts
rexnet_150 rexnetr_150 sam2_hiera_tiny selecsls42b selecsls60b seresnet18 seresnetaa50d
seresnext26d_32x4d shvit_s4 skresnet34 skresnet50d spnasnet_100 starnet_s1 starnet_s3
tf_efficientnet_lite3 tf_efficientnetv2_s tf_mobilenetv3_small_100 tiny_vit_5m_224 tinynet_b
tresnet_l vgg13 vgg16 vgg19 wide_resnet50_2 xception41 xception41p xception65p
"""
# These take images of one side only:
_FIXED = """
beit_base_patch16_224:224 botnet50ts_256:256 cait_xxs24_384:384 coat_lite_mini:224 coat_small:224
coat_tiny:224 coatnet_1_rw_224:224 coatnet_nano_rw_224:224 convit_base:224 convit_tiny:224
crossvit_base_240:240 deit3_small_patch16_224:224 deit_small_distilled_patch16_224:224
deit_tiny_patch16_224:224 efficientformer_l1:224 efficientformer_l7:224 efficientformerv2_s0:224
efficientformerv2_s2:224 efficientvit_m1:224 efficientvit_m4:224 gcvit_xtiny:224 gmlp_s16_224:224
hiera_small_abswin_256:256 lambda_resnet26rpt_256:256 levit_128s:224 levit_256:224
maxvit_tiny_rw_224:224 maxxvit_rmlp_tiny_rw_256:256 mixer_b16_224:224 mvitv2_base_cls:224
mvitv2_small_cls:224 mvitv2_tiny:224 nest_base_jx:224 nest_tiny:224 pit_s_224:224 pit_xs_224:224
resmlp_12_224:224 sebotnet33ts_256:256 sequencer2d_l:224 sequencer2d_s:224 swiftformer_l3:224
swiftformer_xs:224 swin_s3_base_224:224 swin_s3_tiny_224:224 swin_small_patch4_window7_224:224
swin_tiny_patch4_window7_224:224 swinv2_cr_base_ns_224:224 swinv2_cr_tiny_224:224
swinv2_small_window8_256:256 tnt_b_patch16_224:224 tnt_s_patch16_224:224 twins_pcpvt_small:224
twins_svt_small:224 visformer_small:224 visformer_tiny:224 vit_base_patch16_224:224
vit_base_patch16_384:384 vit_base_patch16_dinov3:256 vit_base_patch16_siglip_224:224
vit_relpos_base_patch16_plus_240:240 vit_relpos_small_patch16_224:224
vit_small_patch16_rope_224:224 vit_small_patch16_224:224 vit_tiny_patch16_224:224
gmixer_24_224:224 pit_b_224:224 volo_d4_224:224 xcit_nano_12_p8_224:224
xcit_tiny_12_p8_224:224
"""

_BATCHES = (1, 8, 32, 2, 64, 4, 16)
_SIDES = (224, 192, 256, 160, 288, 320)
_MOST = 32  # the largest batch that is trained with
_TILES = (2, 4, 8)
_CHUNKS = (64 << 10, 128 << 10, 256 << 10, 512 << 10)
_PARTITIONS = ("ddp", "overlap", "category")


def build(model: str, batch: int, side: int, dtype: str = "float32") -> Ready:
    """Return a network of timm with images, and cross entropy as its loss."""
    from memplan_lab.corpus.runs import Ready
    from memplan_lab.corpus.weightless import Weightless

    torch = require("torch", extra="corpus")
    timm = require("timm", extra="corpus")
    with Weightless():
        module = timm.create_model(model)
    elements = getattr(torch, dtype)
    module.to(device="meta", dtype=elements)
    images = torch.empty(batch, 3, side, side, dtype=elements, device="meta")
    right = torch.empty(batch, dtype=torch.long, device="meta")

    def loss(scores: Any) -> Any:
        return torch.nn.functional.cross_entropy(scores.float(), right)

    return Ready(module, (images,), loss=loss)


def iterate_models() -> Iterator[tuple[str, int]]:
    """Yield the models, each with the side of images that it takes; 0: any."""
    for name in _FREE.split():
        yield name, 0
    for text in _FIXED.split():
        name, _, side = text.partition(":")
        yield name, int(side)


def _networks(shift: int, least: int = 1, most: int = 64) -> Iterator[tuple[int, Network]]:
    """Yield all networks by number, with settings that vary; a shift changes all settings."""
    for number, (model, side) in enumerate(iterate_models()):
        turn = number + shift
        batch = max(least, min(_BATCHES[turn % len(_BATCHES)], most))
        side = side or _SIDES[turn % len(_SIDES)]
        dtype = ("float32", "bfloat16")[turn % 2]
        make = partial(build, model, batch, side, dtype)
        yield number, Network("timm", model, make, batch, side, dtype)


def _inference() -> Iterator[Recipe]:
    for _, network in _networks(0):
        yield network.recipe("timm-inference", "inference")


def _training() -> Iterator[Recipe]:
    for number, network in _networks(1, least=2, most=_MOST):
        gradients = ("kept", "released")[number % 2]
        yield network.recipe("timm-training", "training", gradients=gradients)


def _int8() -> Iterator[Recipe]:
    for _, network in _networks(2, most=4):
        yield network.recipe("timm-int8", "int8")


def _scratchpad() -> Iterator[Recipe]:
    for number, network in _networks(3, most=1):
        tiles, chunk = _TILES[number % len(_TILES)], _CHUNKS[number % len(_CHUNKS)]
        yield network.recipe("timm-scratchpad", "scratchpad", tiles=tiles, chunk=chunk)


def _streams() -> Iterator[Recipe]:
    for number, network in _networks(4, least=2, most=_MOST):
        if number % 3 == 0:
            partition = _PARTITIONS[number // 3 % len(_PARTITIONS)]
            yield network.recipe("timm-streams", "streams", partition=partition, optimizer="sgd")


FAMILIES = {
    "timm-inference": _inference,
    "timm-training": _training,
    "timm-int8": _int8,
    "timm-scratchpad": _scratchpad,
    "timm-streams": _streams,
}
