"""A program of its own, for the Python that has TensorFlow: small models in every form, with their outputs.

python make_models.py FOLDER
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def keras_models(tf: Any, np: Any, folder: Path) -> None:
    layers = tf.keras.layers
    image = tf.keras.Input((16, 16, 3), name="img")
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same")(image)))
    x = layers.GlobalAveragePooling2D()(x)
    ends = [layers.Dense(5, activation="softmax", name="cls")(x), layers.Dense(2, name="box")(x)]
    model = tf.keras.Model(image, ends, name="two")
    model.save(folder / "two.keras")
    model.save(folder / "two.h5")
    model.export(folder / "two_saved", verbose=False)
    chain = [tf.keras.Input((4,), name="x"), layers.Dense(3), layers.ReLU(name="head")]
    tf.keras.Sequential(chain).save(folder / "chain.keras")
    data = np.random.default_rng(0).random((1, 16, 16, 3)).astype(np.float32)
    found = model(data)
    np.savez(folder / "two.npz", img=data, cls=found[0], box=found[1])


def own_ops(tf: Any, folder: Path) -> None:
    """Ops that TensorFlow does not know, in every form that can hold them."""
    graph = tf.compat.v1.GraphDef()
    place = graph.node.add(name="x", op="Placeholder")
    place.attr["dtype"].type = tf.float32.as_datatype_enum
    for size in (1, 4, 4, 3):
        place.attr["shape"].shape.dim.add(size=size)
    own = graph.node.add(name="own", op="ScaledTanh", input=["x"])
    own.attr["T"].type, own.attr["factor"].f, own.attr["shift"].i = tf.float32.as_datatype_enum, 2.5, 1
    end = graph.node.add(name="y", op="Relu", input=["own"])
    end.attr["T"].type = tf.float32.as_datatype_enum
    (folder / "own.pb").write_bytes(graph.SerializeToString())
    own.op, end.op, end.input[:] = "Halves", "Sub", ["own", "own:1"]
    del own.attr["factor"], own.attr["shift"]
    (folder / "own_halves.pb").write_bytes(graph.SerializeToString())
    own_objects(tf, folder)


def own_objects(tf: Any, folder: Path) -> None:
    """SavedModels of both versions and a checkpoint; their op is known in the process that writes them."""
    register = importlib.import_module("tensorflow.lite.python.convert").register_custom_opdefs
    args = "input_arg: { name: 'x' type: DT_FLOAT } output_arg: { name: 'out' type: DT_FLOAT }"
    register([f"name: 'ScaledTanh' {args} attr: {{ name: 'factor' type: 'float' }}"
              " attr: { name: 'shift' type: 'int' }"])  # fmt: skip
    v1, shape = tf.compat.v1, (1, 4, 4, 3)

    def own(x: Any) -> Any:
        values = {"factor": v1.AttrValue(f=2.5), "shift": v1.AttrValue(i=1)}
        made = v1.get_default_graph().create_op("ScaledTanh", [x], [tf.float32], attrs=values)
        return tf.nn.relu(made.outputs[0], name="y")

    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, shape, name="x")
        y = own(x + v1.get_variable("v", [3], initializer=v1.zeros_initializer()))
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(folder / "own_ckpt"))
        v1.saved_model.simple_save(session, str(folder / "own_saved1"), {"x": x}, {"y": y})

    module = tf.Module()
    spec = tf.TensorSpec(shape, name="x")
    module.call = tf.function(lambda x: {"y": own(x)}, input_signature=[spec], autograph=False)
    tf.saved_model.save(module, str(folder / "own_saved2"), signatures=module.call)
    own_function(tf, folder, shape)


def own_function(tf: Any, folder: Path, shape: tuple[int, ...]) -> None:
    """A function that names the op which it implements, as TFLite's operation fusion has it."""
    words = 'name: "ScaledTanh" attr { key: "tfl_fusable_op" value { b: true } }'
    words += ' attr { key: "factor" value { f: 2.5 } } attr { key: "shift" value { i: 1 } }'
    spec = tf.TensorSpec(shape, name="x")
    own = tf.function(lambda x: 2.5 * tf.tanh(x) + 1, input_signature=[spec], experimental_implements=words)
    module = tf.Module()
    module.own = own
    module.call = tf.function(lambda x: {"y": tf.nn.relu(module.own(x))}, input_signature=[spec])
    tf.saved_model.save(module, str(folder / "own_function"), signatures=module.call)


def graphs(tf: Any, np: Any, folder: Path) -> None:
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        image = v1.placeholder(tf.float32, [None, 8, 8, 3], name="input/img")
        weight = v1.get_variable("w", [3, 3, 3, 4], initializer=v1.random_normal_initializer(seed=1))
        y = tf.nn.conv2d(image, weight, 1, "SAME")
        y = tf.nn.relu(tf.quantization.fake_quant_with_min_max_args(y, -6, 6))
        end = tf.identity(tf.reduce_mean(y, [1, 2]), name="head/out")
        tf.multiply(y, 2.0, name="unused/mul")
        session.run(v1.global_variables_initializer())
        data = np.random.default_rng(0).random((1, 8, 8, 3)).astype(np.float32)
        np.savez(folder / "graph.npz", img=data, out=session.run(end, {image: data}))
        v1.train.Saver().save(session, str(folder / "ckpt"))
        whole, names = session.graph.as_graph_def(), ["head/out", "unused/mul"]
        frozen = v1.graph_util.convert_variables_to_constants(session, whole, names)
        (folder / "frozen.pb").write_bytes(frozen.SerializeToString())
        (folder / "unfrozen.pb").write_bytes(whole.SerializeToString())


if __name__ == "__main__":
    tensorflow: Any = importlib.import_module("tensorflow")
    numpy: Any = importlib.import_module("numpy")
    tensorflow.keras.utils.set_random_seed(1)
    keras_models(tensorflow, numpy, Path(sys.argv[1]))
    graphs(tensorflow, numpy, Path(sys.argv[1]))
    own_ops(tensorflow, Path(sys.argv[1]))
