"""tilefw backend for the Tarn N1, a made-up NPU."""
