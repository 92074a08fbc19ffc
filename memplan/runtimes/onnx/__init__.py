"""ONNX models and onnxruntime: reads models, asks the runtime, writes other models."""
