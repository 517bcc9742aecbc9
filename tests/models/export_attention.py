"""Exports small attention models of timm and transformers with random weights, by torch's ONNX exporter.

    python tests/models/export_attention.py FOLDER [NAME ...]

It needs an environment with torch, timm, transformers and onnxscript, and nothing of this package. Weights
are drawn so that signals neither die nor explode, with channels of uneven size: as they come from their
makers (0.02 everywhere) attention would look at nothing.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

SIZE, TOKENS, VOCABULARY, FRAMES = 64, 24, 200, 64
Made = tuple[nn.Module, tuple[Tensor, ...]]


class First(nn.Module):
    """A model that gives one tensor: the first of what another gives."""

    def __init__(self, inner: nn.Module, **settings: Any) -> None:
        super().__init__()
        self.inner, self.settings = inner, settings

    def forward(self, x: Tensor) -> Tensor:
        found = self.inner(x, **self.settings)
        return found if isinstance(found, Tensor) else found[0]


def _vision(name: str, size: int = SIZE, **settings: Any) -> Made:
    import timm

    return First(timm.create_model(name, num_classes=10, **settings)), (torch.randn(1, 3, size, size),)


def _sized(name: str, **settings: Any) -> Made:
    return _vision(name, img_size=SIZE, **settings)


def _tokens() -> Tensor:
    return torch.randint(0, VOCABULARY, (1, TOKENS))


SMALL: dict[str, Any] = {
    "hidden_size": 96, "intermediate_size": 192, "num_hidden_layers": 3, "num_attention_heads": 4,
    "vocab_size": VOCABULARY,
}  # fmt: skip


def _decoder(kind: str, **settings: Any) -> Made:
    import transformers as t

    config = getattr(t, f"{kind}Config")(**SMALL, max_position_embeddings=64, **settings)
    config._attn_implementation = "eager"
    return First(getattr(t, f"{kind}ForCausalLM")(config), use_cache=False, return_dict=False), (_tokens(),)


def _encoder(kind: str, **settings: Any) -> Made:
    import transformers as t

    config = getattr(t, f"{kind}Config")(**SMALL | settings)
    config._attn_implementation = "eager"
    return First(getattr(t, f"{kind}Model")(config), return_dict=False), (_tokens(),)


def _whisper() -> Made:
    import transformers as t
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = t.WhisperConfig(
        d_model=96, encoder_layers=3, encoder_attention_heads=4, encoder_ffn_dim=192,
        max_source_positions=FRAMES // 2, num_mel_bins=40,
    )  # fmt: skip
    config._attn_implementation = "eager"
    return First(WhisperEncoder(config), return_dict=False), (torch.randn(1, 40, FRAMES),)


def _segformer() -> Made:
    import transformers as t

    config = t.SegformerConfig(hidden_sizes=[16, 32, 48, 64], decoder_hidden_size=64, num_labels=5)
    return First(t.SegformerForSemanticSegmentation(config), return_dict=False), (
        torch.randn(1, 3, SIZE, SIZE),
    )


MODELS: dict[str, Callable[[], Made]] = {
    "vit_tiny": lambda: _sized("vit_tiny_patch16_224", patch_size=8, depth=6),
    "swin_tiny": lambda: _sized(
        "swin_tiny_patch4_window7_224", window_size=4, depths=(2, 2, 2, 2), embed_dim=48
    ),
    "eva02_tiny": lambda: _sized("eva02_tiny_patch14_224", patch_size=8, depth=4),
    "mobilevit_xxs": lambda: _vision("mobilevit_xxs"),
    "levit_128s": lambda: _sized("levit_128s"),
    "xcit_nano": lambda: _sized("xcit_nano_12_p8_224", depth=4),
    "edgenext_xx_small": lambda: _vision("edgenext_xx_small"),
    "segformer": _segformer,
    "bert": lambda: _encoder("Bert"),
    "whisper_encoder": _whisper,
    "llama": lambda: _decoder("Llama", num_key_value_heads=2),
    "qwen3": lambda: _decoder("Qwen3", num_key_value_heads=2, head_dim=24),
    "gpt_neox": lambda: _decoder("GPTNeoX", rotary_pct=0.5),
}  # fmt: skip


def draw_weights(model: nn.Module) -> None:
    """Weights with variance 1 / inputs, norms and biases uneven, statistics of batch norms as they follow."""
    for name, weight in (*model.named_parameters(), *model.named_buffers()):
        if not weight.is_floating_point():
            continue
        with torch.no_grad():
            _draw(name, weight)


def _draw(name: str, weight: Tensor) -> None:
    if name.endswith("running_var"):
        weight.copy_(torch.rand_like(weight) + 0.5)
    elif name.endswith(("running_mean", "bias")) and weight.ndim == 1:
        weight.normal_(0, 0.1)
    elif "inv_freq" in name or "rope" in name:
        return
    elif weight.ndim >= 2 and "embed" not in name:
        weight.normal_(0, (weight[0].numel()) ** -0.5)
        weight.mul_(torch.exp(0.3 * torch.randn(len(weight), *[1] * (weight.ndim - 1))))
    elif weight.ndim >= 2:
        weight.normal_(0, 1)
    elif "weight" in name:
        weight.copy_(torch.exp(0.3 * torch.randn_like(weight)))


def export(name: str, folder: Path) -> Path:
    """The model's file, in the folder."""
    torch.manual_seed(sum(map(ord, name)))
    model, inputs = MODELS[name]()
    draw_weights(model)
    model.eval()
    path = folder / f"{name}.onnx"
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, inputs, path, dynamo=True, external_data=False, input_names=["x"], output_names=["y"],
            verbose=False,
        )  # fmt: skip
    return path


VISION_OPS = (
    "roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool", "deform_conv2d", "qroi_align",
    "_roi_align_backward", "_ps_roi_align_backward", "_roi_pool_backward",
    "_ps_roi_pool_backward", "_deform_conv2d_backward",
)  # fmt: skip


def _without_vision_ops() -> None:
    """Let timm and transformers import torchvision, whose compiled part is not made for torch's CPU build."""
    library = torch.library.Library("torchvision", "DEF")
    _kept.append(library)
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor")
    for name in VISION_OPS:
        library.define(f"{name}(Tensor x) -> Tensor")


_kept: list[Any] = []


def main(folder: str, names: Iterable[str]) -> int:
    _without_vision_ops()
    Path(folder).mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names or MODELS:
        try:
            print(export(name, Path(folder)), flush=True)
        except Exception as error:  # one that cannot be exported must not stop the others
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error)[:400]}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
