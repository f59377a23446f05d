"""What runs on the robot: numpy and onnxruntime, no torch and no simulator."""
