"""One layer of a BERT encoder in ONNX Runtime, in float64: attention with its probabilities, and the
rest of the layer, whose result is the next layer's input."""
import math

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


class EncoderLayer:
    """`tensors` maps the names below `prefix` to arrays; `eps` is the layer norm's."""

    def __init__(self, tensors: dict[str, np.ndarray], prefix: str, heads: int, eps: float):
        self._nodes, self._constants = [], []
        get = lambda name: tensors[prefix + name].astype(np.float64)
        d_f = get("attention.self.query.weight").shape[0]
        d_k = d_f // heads

        def linear(source, name, target):
            weight = self._constant(get(name + ".weight").T)
            self._node("MatMul", [source, weight], target + "_product")
            self._node("Add", [target + "_product", self._constant(get(name + ".bias"))], target)

        def norm(source, name, target):
            scale, bias = (self._constant(get(f"{name}.{part}")) for part in ("weight", "bias"))
            self._node("LayerNormalization", [source, scale, bias], target, axis=-1, epsilon=eps)

        for part in ("query", "key", "value"):
            linear("items", f"attention.self.{part}", part)
            split = self._constant(np.array([-1, heads, d_k], dtype=np.int64))
            self._node("Reshape", [part, split], part + "_heads")
            order = [1, 2, 0] if part == "key" else [1, 0, 2]
            self._node("Transpose", [part + "_heads"], part + "_by_head", perm=order)
        self._node("MatMul", ["query_by_head", "key_by_head"], "dots")
        self._node("Mul", ["dots", self._constant(np.array(1 / math.sqrt(d_k)))], "scores")
        self._node("Softmax", ["scores"], "weights", axis=-1)
        self._node("MatMul", ["weights", "value_by_head"], "mixed")
        self._node("Transpose", ["mixed"], "mixed_by_item", perm=[1, 0, 2])
        joined = self._constant(np.array([-1, d_f], dtype=np.int64))
        self._node("Reshape", ["mixed_by_item", joined], "y")
        linear("y", "attention.output.dense", "values")
        self._node("Add", ["items", "values"], "attended")
        norm("attended", "attention.output.LayerNorm", "attended_norm")
        linear("attended_norm", "intermediate.dense", "wide")
        self._node("Mul", ["wide", self._constant(np.array(math.sqrt(0.5)))], "wide_scaled")
        # There is no Erf in float64; the next layer's items are float32 anyway.
        self._node("Cast", ["wide_scaled"], "wide_single", to=TensorProto.FLOAT)
        self._node("Erf", ["wide_single"], "erf_single")
        self._node("Cast", ["erf_single"], "wide_erf", to=TensorProto.DOUBLE)
        self._node("Add", ["wide_erf", self._constant(np.array(1.0))], "wide_gate")
        self._node("Mul", ["wide", "wide_gate"], "wide_gated")
        self._node("Mul", ["wide_gated", self._constant(np.array(0.5))], "gelu")
        linear("gelu", "output.dense", "narrow")
        self._node("Add", ["attended_norm", "narrow"], "sum")
        norm("sum", "output.LayerNorm", "next_items")
        self.outputs = ["query", "key", "value", "scores", "weights", "y", "values", "next_items"]
        self._session = self._build(d_f)

    def run(self, items: np.ndarray) -> dict[str, np.ndarray]:
        """Every array of self.outputs for items [N, d_f]."""
        results = self._session.run(self.outputs, {"items": items.astype(np.float64)})
        return dict(zip(self.outputs, results))

    def _constant(self, array):
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def _node(self, kind, inputs, output, **attributes):
        self._nodes.append(helper.make_node(kind, inputs, [output], **attributes))

    def _build(self, d_f):
        double = lambda name, shape=None: helper.make_tensor_value_info(
            name, TensorProto.DOUBLE, shape)
        graph = helper.make_graph(self._nodes, "layer", [double("items", ["N", d_f])],
                                  [double(name) for name in self.outputs], self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        return onnxruntime.InferenceSession(model.SerializeToString(),
                                            providers=["CPUExecutionProvider"])
