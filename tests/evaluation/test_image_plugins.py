"""Plugins about images and boxes, against Pillow, OpenCV, pycocotools and sums by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from openqnn.errors import InputError, UsageError
from openqnn.evaluation.plugins.box_metrics import COCO_CLASSES
from openqnn.evaluation.plugins.detections import Detection
from openqnn.evaluation.plugins.face_metrics import average_precision
from openqnn.evaluation.plugins.image_sizes import FRAME
from openqnn.evaluation.plugins.images import ORIGINAL
from openqnn.evaluation.plugins.plates import ALPHABET
from openqnn.evaluation.plugins.plugin import Context, Dataset, Item, Result
from openqnn.evaluation.plugins.registry import make_plugin
from openqnn.ir import Array
from openqnn.runtime.onnx_runner import OnnxRuntimeRunner
from tests.models.fetch import model_path
from tests.models.samples import photo

PHOTO = np.asarray(photo("astronaut"))


def context(annotation: Path | None = None, **said: Any) -> Context:
    return Context(Dataset(Path("."), (), (), annotation), Path("."), **said)


def made(name: str, params: dict[str, Any], *, stage: str = "preprocessing", memory: bool = False) -> Any:
    return make_plugin(stage, name, params, "here", memory=memory)


def processed(name: str, image: Array, memory: bool = False, **params: Any) -> Item:
    item = Item(("a.png",), (image,), (), {ORIGINAL: image.shape[:2]})
    return made(name, params, memory=memory).process(item, context())


@pytest.mark.parametrize("interp", ["bilinear", "area", "nearest", "bicubic"])
def test_resize_by_opencv(interp: str) -> None:
    how = getattr(cv2, f"INTER_{ {'bilinear': 'LINEAR', 'bicubic': 'CUBIC'}.get(interp, interp.upper()) }")
    found = processed("resize", PHOTO, dims="60,80", interp=interp).arrays[0]
    assert np.array_equal(found, cv2.resize(PHOTO, (80, 60), interpolation=how))
    assert found.dtype == np.float32


@pytest.mark.parametrize("library", ["pillow", "torchvision"])
@pytest.mark.parametrize("interp", ["bilinear", "nearest", "bicubic", "box", "hamming", "lanczos"])
def test_resize_by_pillow(library: str, interp: str) -> None:
    if library == "torchvision" and interp in ("box", "hamming", "lanczos"):
        with pytest.raises(UsageError, match="torchvision has no interpolation"):
            processed("resize", PHOTO, dims="60,80", interp=interp, library=library)
        return
    found = processed("resize", PHOTO, dims=[60, 80], interp=interp, library=library).arrays[0]
    expected = Image.fromarray(PHOTO).resize((80, 60), Image.Resampling[interp.upper()])
    assert np.array_equal(found, np.asarray(expected))


def test_usual_interpolations_differ_by_library() -> None:
    found = processed("resize", PHOTO, dims="60,80", library="pillow").arrays[0]
    assert np.array_equal(
        found, np.asarray(Image.fromarray(PHOTO).resize((80, 60), Image.Resampling.BICUBIC))
    )


def test_kinds_of_resize() -> None:
    wide = PHOTO[:256]  # 256 by 512
    letter = processed("resize", wide, dims="100,100", type="letterbox")
    assert (letter.arrays[0][:25] == 114).all()
    assert (letter.arrays[0][75:] == 114).all()
    assert np.array_equal(letter.arrays[0][25:75], cv2.resize(wide, (100, 50)))
    assert letter.notes[FRAME].offset == (0, 25)
    assert processed("resize", wide, dims="100,100", type="aspect_ratio").arrays[0].shape == (50, 100, 3)
    cut = processed("resize", wide, dims="224,224", type="imagenet").arrays[0]
    assert np.array_equal(cut, cv2.resize(wide, (512, 256))[16:240, 144:368])
    bgr = processed("resize", wide, dims="50,100", channel_order="BGR").arrays[0]
    assert np.array_equal(bgr, processed("resize", wide, dims="50,100").arrays[0][..., ::-1])


def test_what_only_tensorflow_has() -> None:
    mean, std = {"R": 0.5, "G": 0.4, "B": 0.3}, {"R": 0.2, "G": 0.2, "B": 0.4}
    found = processed(
        "resize", PHOTO, memory=True, dims="64,64", library="tensorflow", mean=mean, std=std, norm=255.0,
        crop_before_resize=True, normalize_first=True,
    ).arrays[0]  # fmt: skip
    side = round(512 * 0.0625)
    cut = cv2.resize(np.ascontiguousarray(PHOTO[side:-side, side:-side]), (64, 64))
    assert found == pytest.approx((cut / 255 - [0.5, 0.4, 0.3]) / [0.2, 0.2, 0.4], abs=1e-5)


def test_crop_and_pad() -> None:
    assert np.array_equal(processed("crop", PHOTO, dims="100,50").arrays[0], PHOTO[206:306, 231:281])
    grown = processed("crop", PHOTO[:50], dims="100,50", library="torchvision").arrays[0]
    assert grown.shape == (100, 50, 3)
    assert (grown[:25] == 0).all()
    with pytest.raises(UsageError, match=r"50 by 512 has no 100 by 50"):
        processed("crop", PHOTO[:50], dims="100,50")
    constant = processed("pad", PHOTO, type="constant", dims="1,1", pad_size=3, color=7).arrays[0]
    assert constant.shape == (518, 518, 3)
    assert (constant[:3] == 7).all()
    corner = processed("pad", PHOTO[:50], type="target_dims", dims="100,600", img_position="corner").arrays[0]
    assert np.array_equal(corner[:50, :512], PHOTO[:50])
    assert (corner[50:] == 114).all()
    with pytest.raises(UsageError, match="needs pad_size"):
        processed("pad", PHOTO, type="constant")


def test_normalize() -> None:
    means, std = {"R": 0.485, "G": 0.456, "B": 0.406}, {"R": 0.229, "G": 0.224, "B": 0.225}
    m, s = np.array(list(means.values())), np.array(list(std.values()))
    first = processed("normalize", PHOTO, means=means, std=std).arrays[0]
    assert first == pytest.approx((PHOTO / 255 - m) / s, abs=1e-5)
    last = processed("normalize", PHOTO, means=means, std=std, normalize_first=False).arrays[0]
    assert last == pytest.approx((PHOTO - m) / s / 255, abs=1e-4)
    bgr = processed("normalize", PHOTO[..., ::-1], means=means, std=std, channel_order="BGR").arrays[0]
    assert np.array_equal(bgr, first[..., ::-1])
    torch = processed("normalize", PHOTO, means=means, std=std, library="torchvision", norm=3).arrays[0]
    assert np.array_equal(torch, first.transpose(2, 0, 1))
    assert np.array_equal(processed("normalize", PHOTO, norm=2).arrays[0], PHOTO / np.float32(2))


def test_axes() -> None:
    found = processed("convert_nchw", PHOTO).arrays[0]
    assert np.array_equal(found, PHOTO.transpose(2, 0, 1)[None])
    back = processed("convert_nchw", found[0], **{"expand-dims": False}).arrays[0]
    assert np.array_equal(back, PHOTO)
    assert processed("expand_dims", PHOTO).arrays[0].shape == (1, 512, 512, 3)
    with pytest.raises(UsageError, match="is no image"):
        processed("convert_nchw", found)


def test_image_transformers(tmp_path: Path) -> None:
    found = processed("image_transformers_input", PHOTO[:256], dims="3,224,224", image_only=True).arrays
    assert found[0].shape == (1, 3, 224, 224)
    assert abs(float(found[0].mean())) < 2
    ids = np.arange(10 * 77, dtype=np.int64)
    ids.tofile(tmp_path / "text.raw")
    plugin = made("image_transformers_input", {"dims": "3,64,64", "num_base_class": 3, "num_prompt": 2})
    item = Item(("a.png", str(tmp_path / "text.raw")), (PHOTO,), (), {})
    assert np.array_equal(plugin.process(item, context()).arrays[1], ids.reshape(10, 77)[:6])
    assert made("image_transformers_input", {"dims": "3,4,4"}, memory=True).image_only


def test_files_and_memory_have_their_own_parameters() -> None:
    with pytest.raises(UsageError, match="no such parameter"):
        made("resize", {"dims": "2,2", "norm": 1})
    with pytest.raises(UsageError, match="no such parameter"):
        made("create_batch", {"truncate": True}, memory=True)
    with pytest.raises(UsageError, match="there is no preprocessing plugin 'squad_read' among the memory"):
        made("squad_read", {}, memory=True)
    assert made("topk", {}, stage="metric").kval == (5,)
    assert made("topk", {}, stage="metric", memory=True).kval == (1, 5)


# -- boxes ---------------------------------------------------------------------------------------------------


def result(item: Item, *arrays: Any) -> Result:
    return Result(item, tuple(np.asarray(a, np.float32) for a in arrays))


def post(name: str, found: Result, memory: bool = False, **params: Any) -> Any:
    return (
        made(name, params, stage="postprocessing", memory=memory).process(found, context(memory=memory)).value
    )


def test_boxes_come_back_to_the_image() -> None:
    """Through a letterbox: what was at a place of the image is there again."""
    item = processed("resize", PHOTO[:256], dims="128,128", type="letterbox")
    boxes = [[[32, 64, 64, 96], [0, 0, 8, 8]]]
    found = post(
        "object_detection", result(item, boxes, [[0.9, 0.0001]], [[3, 1]]), dims="128,128", type="letterbox"
    )
    assert len(found) == 1
    assert found[0].box == pytest.approx((128, 128, 256, 256))
    assert (found[0].label, found[0].score) == (3, pytest.approx(0.9))
    kept = post(
        "object_detection", result(item, boxes, [[0.9, 0.0001]], [[3, 1]]), dims="128,128", skip_padding=True,
        label_offset=1, score_threshold=0,
    )  # fmt: skip
    assert [d.label for d in kept] == [4, 2]
    assert kept[0].box == pytest.approx((128, 256, 256, 256))  # inside of the image


def test_forms_of_boxes() -> None:
    item = processed("resize", PHOTO, dims="100,100")
    plain = post("object_detection", result(item, [[[10, 20, 30, 60]]], [[0.5]], [[0]]), dims="100,100")[0]
    middle = post(
        "object_detection", result(item, [[[0.2, 0.4, 0.2, 0.4]]], [[[0.1, 0.5, 0.3]]]), dims="100,100",
        xywh_to_xyxy=True, scale="100",
    )[0]  # fmt: skip
    swapped = post(
        "object_detection", result(item, [[[20, 10, 60, 30]]], [[0.5]], [[0]]), dims="100,100", xy_swap=True
    )[0]
    assert middle.box == pytest.approx(plain.box, rel=1e-5)
    assert middle.label == 1
    assert swapped.box == plain.box
    filled = result(item, [[[10, 20, 30, 60], [0, 0, 0, 0]]], [[0.5, 0.0]], [[0, 0]])
    options = {"dims": "100,100", "score_threshold": 0}
    assert len(post("object_detection", filled, **options)) == 2
    assert len(post("object_detection", filled, **options, padded_outputs=True)) == 1
    with pytest.raises(InputError, match="are no boxes"):
        post("object_detection", result(item, [[1.0, 2, 3]]), dims="100,100")


def test_faces_of_a_real_network() -> None:
    """CenterFace finds the one face of the portrait, at its place in the photo."""
    item = processed("resize", PHOTO, dims="320,320")
    inputs = np.ascontiguousarray(item.arrays[0].transpose(2, 0, 1)[None])
    runner = OnnxRuntimeRunner(model_path("centerface"), input_shapes={"input.1": (1, 3, 320, 320)})
    outputs = list(runner.run({"input.1": inputs}).values())
    runner.close()
    found = post("centerface_postproc", Result(item, tuple(outputs)), dims="320,320", heatmap_threshold=0.5)
    assert len(found) == 1
    left, top, right, bottom = found[0].box
    assert 150 < left < 200
    assert 250 < right < 300
    assert 40 < top < 90
    assert 160 < bottom < 220


def test_centernet() -> None:
    item = processed("centernet_preproc", PHOTO, dims="128,128")
    assert item.arrays[0].shape == (128, 128, 3)
    heat, size, offset = np.zeros((1, 2, 32, 32)), np.zeros((1, 2, 32, 32)), np.zeros((1, 2, 32, 32))
    heat[0, 1, 8, 16], heat[0, 1, 8, 17], heat[0, 0, 20, 4] = 0.9, 0.8, 0.005
    size[0, :, 8, 16], offset[0, :, 8, 16] = (8, 4), (0.5, 0.25)
    found = post(
        "centernet_postprocess", result(item, heat, size, offset), output_dims="32,32", num_classes=2,
        dtypes="float32,float32,float32",
    )  # fmt: skip
    assert len(found) == 1  # the neighbour is no peak, the third is below one percent
    assert found[0].label == 1
    assert found[0].box == pytest.approx((200, 100, 328, 164))
    with pytest.raises(UsageError, match="three types"):
        post("centernet_postprocess", result(item, heat, size, offset), output_dims="32,32", dtypes="float32")


def test_plates() -> None:
    blank, scores = len(ALPHABET) - 1, np.zeros((1, len(ALPHABET), 8))
    for column, c in enumerate([31, 31, blank, 31, 41, blank, 42, 42]):
        scores[0, c, column] = 1
    assert post("lprnet_predict", result(Item(("a",)), scores)) == "00AB"


def judged(name: str, results: list[Result], annotation: Path, **params: Any) -> dict[str, float]:
    return made(name, params, stage="metric").evaluate(results, context(annotation))


def test_map_of_coco(tmp_path: Path) -> None:
    images = [{"id": i, "file_name": f"COCO_{i:06d}.jpg", "width": 100, "height": 100} for i in (1, 2)]
    truth = [
        {"id": i, "image_id": i, "category_id": 18, "bbox": [10, 10, 40, 40], "area": 1600, "iscrowd": 0}
        for i in (1, 2)
    ]
    path = tmp_path / "coco.json"
    path.write_text(
        json.dumps({"images": images, "annotations": truth, "categories": [{"id": 18, "name": "dog"}]})
    )
    label = COCO_CLASSES.index(18)
    first = Result(Item(("COCO_000001.jpg",)), (), [Detection(label, 0.9, (10, 10, 50, 50))])
    second = Result(Item(("COCO_000002.jpg",)), (), [Detection(label, 0.8, (10, 10, 50, 50))])
    assert judged("map_coco", [first, second], path, map_80_to_90=True) == {
        "mAP 50": 100,
        "mAP 50:05:95": 100,
    }
    nothing = Result(second.item, (), [])
    half = judged("map_coco", [first, nothing], path, map_80_to_90=True)
    assert half["mAP 50"] == pytest.approx(100 * 51 / 101)  # recall of 0 to 0.5 in 101 steps
    assert judged("map_coco", [nothing], path) == {"mAP 50": 0, "mAP 50:05:95": 0}
    with pytest.raises(InputError, match=r"says nothing of image 'x9\.jpg'"):
        judged("map_coco", [Result(Item(("x9.jpg",)), (), [])], path)


def coco_file(path: Path, **more: Any) -> Path:
    """One image of 100 by 100 with a dog of 40 by 40."""
    truth = {"id": 1, "image_id": 1, "category_id": 0, "bbox": [10, 10, 40, 40], "area": 1600, "iscrowd": 0}
    images = [{"id": 1, "file_name": "COCO_000001.jpg", "width": 100, "height": 100}]
    category = {"id": 0, "name": "dog", "keypoints": [], "skeleton": []}
    path.write_text(json.dumps({"images": images, "annotations": [truth | more], "categories": [category]}))
    return path


@pytest.mark.parametrize(("columns", "value"), [(28, 100), (21, 60), (14, 10)])
def test_masks_of_coco(columns: int, value: float, tmp_path: Path) -> None:
    """A mask of 28 by 28 fills its box as far as `columns` go: the overlap is that share, and ten thresholds
    from 0.5 to 0.95 are passed by it or not."""
    path = coco_file(tmp_path / "coco.json", segmentation=[[10, 10, 50, 10, 50, 50, 10, 50]])
    mask = np.zeros((1, 28, 28), np.float32)
    mask[:, :, :columns] = 1
    found = Detection(0, 0.9, (10, 10, 50, 50), mask)
    item = Item(("COCO_000001.jpg",), notes={ORIGINAL: (100, 100)})
    said = judged("map_coco", [Result(item, (), [found])], path, segm=True)
    assert said == pytest.approx({"mAP 50": 100, "mAP 50:05:95": value})
    bare = Result(item, (), [Detection(0, 0.9, (10, 10, 50, 50))])
    with pytest.raises(InputError, match="segm needs masks"):
        judged("map_coco", [bare], path, segm=True)


@pytest.mark.parametrize("shift", [0.0, 1.5, 3.0, 6.0])
def test_key_points_of_coco(shift: float, tmp_path: Path) -> None:
    """Similarity of key points by its published formula: exp(-d2 / (2 * area * (2 * sigma)2)), their mean."""
    sigmas = np.array([26, 25, 25, 35, 35, 79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89]) / 1000
    places = np.stack([np.linspace(12, 46, 17), np.linspace(14, 48, 17), np.full(17, 2.0)], axis=1)
    path = coco_file(tmp_path / "coco.json", keypoints=places.reshape(-1).tolist(), num_keypoints=17)
    moved = places + np.array([shift, 0, 0])
    found = Detection(0, 0.9, (10, 10, 50, 50), points=tuple(moved.reshape(-1)))
    item = Item(("COCO_000001.jpg",))
    said = judged("map_coco", [Result(item, (), [found])], path, keypoint_map=True)
    similarity = float(np.exp(-(shift**2) / (2 * 1600 * (2 * sigmas) ** 2)).mean())
    passed = [similarity >= t for t in np.arange(0.5, 0.96, 0.05)]
    assert said["mAP 50:05:95"] == pytest.approx(100 * np.mean(passed))
    assert said["mAP 50"] == pytest.approx(100 * passed[0])
    bare = Result(item, (), [Detection(0, 0.9, (10, 10, 50, 50))])
    with pytest.raises(InputError, match="keypoint_map needs key points"):
        judged("map_coco", [bare], path, keypoint_map=True)


def test_average_precision_of_faces(tmp_path: Path) -> None:
    assert average_precision([(0.9, True), (0.8, False), (0.7, True)], 2) == pytest.approx(0.5 + 0.5 * 2 / 3)
    path = tmp_path / "faces.txt"
    path.write_text(
        "0--Parade/a.jpg\n2\n10 10 60 60 0 0 0 0 0 0\n200 10 20 20 0 0 0 0 0 0\n"
        "1--X/b.jpg\n0\n0 0 0 0 0 0 0 0 0 0\n"
    )
    found = [
        Result(
            Item(("a.jpg",)), (), [Detection(0, 0.9, (10, 10, 70, 70)), Detection(0, 0.5, (200, 10, 220, 30))]
        ),
        Result(Item(("b.jpg",)), (), []),
    ]
    assert judged("widerface_AP", found, path) == {"easy_AP": 1, "medium_AP": 1, "hard_AP": 1}
    missed = [Result(found[0].item, (), found[0].value[:1]), found[1]]
    assert judged("widerface_AP", missed, path)["hard_AP"] == 0.5


def test_an_image_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no image")
    for name, said in (("a.png", "this is no image"), ("b.png", "no such file")):
        with pytest.raises(InputError, match=said):
            made("resize", {"dims": "4,4"}).process(Item((str(tmp_path / name),)), context())
