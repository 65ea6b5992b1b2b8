"""The models that `models.py` runs: written by PyTorch and transformers with random weights from a seed, exported to ONNX.

    python -P bench/zoo.py FOLDER [NAME ...]     # one to three minutes a model; a file that is there stays.

`-P` because transformers asks for a package called `kernels`, and a file of this folder is called so. The statistics of batch
normalisations are random: a model whose output vanishes shows no error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OPSET = 20


@dataclass(frozen=True, slots=True)
class ZooModel:
    """A model, how to make it and its inputs. `size` says what of it is smaller than in use, if anything."""

    make: Callable[[], tuple[Any, tuple[Any, ...]]]
    size: str


def export(name: str, folder: Path) -> Path:
    """The ONNX file of a model; it is written where it is not there. A size stands before the name: `small-gpt2`."""
    path = folder / f"{name}.onnx"
    size, _, plain = name.partition("-")
    if path.exists():
        return path
    import torch

    library = torchvision_operators()
    torch.manual_seed(0)
    model, inputs = (SIZES[size][plain] if plain else ZOO[name]).make()
    with torch.no_grad():
        program = torch.onnx.export(model.eval(), inputs, dynamo=True, opset_version=OPSET, optimize=True, verbose=False)
    assert program is not None
    folder.mkdir(parents=True, exist_ok=True)
    program.save(str(path), external_data=name == "gpt2")  # one of them shows that weights may lie beside the file
    del library
    return path


def torchvision_operators() -> Any:
    """TorchVision's binary part need not fit this PyTorch: its operators are there by name while this is held. None is called."""
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def _vision(name: str, pixels: int) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
    def make() -> tuple[Any, tuple[Any, ...]]:
        import torch
        import torchvision

        model = getattr(torchvision.models, name)(weights=None)
        _spread(model)
        return model, (torch.randn(1, 3, pixels, pixels),)

    return make


def _spread(model: Any) -> None:
    """Normalisations in inference that do something: random statistics near those of their inputs."""
    import torch

    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                assert module.running_mean is not None and module.running_var is not None
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 2)
            if isinstance(module, torch.nn.Linear) and not module.weight.any():  # heads that training would begin with
                module.weight.normal_(0, 0.02)


def _text(kind: str, words: int, **config: Any) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
    def make() -> tuple[Any, tuple[Any, ...]]:
        import torch
        import transformers

        settings = getattr(transformers, f"{kind}Config")(attn_implementation="eager", use_cache=False, **config)
        model = getattr(transformers, f"{kind}Model")(settings)
        return _one_to_one(model, "input_ids"), (torch.randint(0, settings.vocab_size, (1, words)),)

    return make


def _whisper() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    settings = WhisperConfig()  # the defaults are those of Whisper tiny
    settings._attn_implementation = "eager"
    return _one_to_one(WhisperEncoder(settings), "input_features"), (torch.randn(1, settings.num_mel_bins, 3000),)


def _one_to_one(model: Any, argument: str) -> Any:
    """The model as a function of one tensor that gives one."""
    import torch

    class OneToOne(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.model(**{argument: x}).last_hidden_state

    return OneToOne()


ZOO: Mapping[str, ZooModel] = {
    "resnet50": ZooModel(_vision("resnet50", 224), "1 x 3 x 224 x 224"),
    "mobilenet_v3_small": ZooModel(_vision("mobilenet_v3_small", 224), "1 x 3 x 224 x 224"),
    "vit_b_16": ZooModel(_vision("vit_b_16", 224), "1 x 3 x 224 x 224"),
    "bert_base": ZooModel(_text("Bert", 32), "12 layers, 32 words"),
    "gpt2": ZooModel(_text("GPT2", 32), "12 layers, 32 words"),
    "whisper_encoder": ZooModel(_whisper, "Whisper tiny, 30 seconds of sound"),
    "llama_2l": ZooModel(
        _text("Llama", 32, num_hidden_layers=2, hidden_size=512, intermediate_size=1376, num_attention_heads=8,
              num_key_value_heads=4, vocab_size=32000), "2 layers, 512 wide, 32 words"
    ),
}


def _small_vit() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from torchvision.models import VisionTransformer

    model = VisionTransformer(32, 16, num_layers=2, num_heads=12, hidden_dim=768, mlp_dim=3072)
    _spread(model)
    return model, (torch.randn(1, 3, 32, 32),)


def _small_whisper() -> tuple[Any, tuple[Any, ...]]:
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    settings = WhisperConfig(encoder_layers=2, max_source_positions=16)
    settings._attn_implementation = "eager"
    return _one_to_one(WhisperEncoder(settings), "input_features"), (torch.randn(1, settings.num_mel_bins, 32),)


_LLAMA = {"hidden_size": 512, "intermediate_size": 1376, "num_attention_heads": 8, "num_key_value_heads": 4}
SMALL: Mapping[str, ZooModel] = {
    "resnet50": ZooModel(_vision("resnet50", 32), "1 x 3 x 32 x 32"),
    "mobilenet_v3_small": ZooModel(_vision("mobilenet_v3_small", 32), "1 x 3 x 32 x 32"),
    "vit_b_16": ZooModel(_small_vit, "2 layers, 1 x 3 x 32 x 32"),
    "bert_base": ZooModel(_text("Bert", 8, num_hidden_layers=2), "2 layers, 8 words"),
    "gpt2": ZooModel(_text("GPT2", 8, n_layer=2), "2 layers, 8 words"),
    "whisper_encoder": ZooModel(_small_whisper, "Whisper tiny, 2 layers, 0.3 seconds of sound"),
    "llama_2l": ZooModel(_text("Llama", 8, num_hidden_layers=2, vocab_size=1000, **_LLAMA), "2 layers, 512 wide, 8 words"),
}
"""Models that simulators of machine code run in minutes: images of 32 pixels, sequences of 8, fewer layers of the same width."""

_TINY_LLAMA = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 64}
_TINY_BERT = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "vocab_size": 64}
TINY: Mapping[str, ZooModel] = {
    "bert_base": ZooModel(_text("Bert", 8, num_hidden_layers=1, **_TINY_BERT), "1 layer, 32 wide, 8 words"),
    "gpt2": ZooModel(_text("GPT2", 8, n_layer=1, n_embd=32, n_head=2, vocab_size=64), "1 layer, 32 wide, 8 words"),
    "llama_2l": ZooModel(_text("Llama", 8, num_hidden_layers=1, **_TINY_LLAMA), "1 layer, 32 wide, 8 words"),
}
"""Models that a chip compiles as one schedule without matrix units for float32."""

SIZES: Mapping[str, Mapping[str, ZooModel]] = {"small": SMALL, "tiny": TINY}


if __name__ == "__main__":
    for wanted in sys.argv[2:] or ZOO:
        print(export(wanted, Path(sys.argv[1])), flush=True)
