"""TensorFlow Lite Micro: reads `.tflite` files, asks the runtime, writes plans into them."""
