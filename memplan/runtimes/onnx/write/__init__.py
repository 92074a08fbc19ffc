"""ONNX models in another order, with operators that run again, or in bands."""

from memplan.runtimes.onnx.write.apply import put_in_bands
from memplan.runtimes.onnx.write.writer import OnnxFile, reorder

__all__ = ["OnnxFile", "put_in_bands", "reorder"]
