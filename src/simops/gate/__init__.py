"""Between training and a robot: how much evidence there is, and what follows from it; numpy and no engine."""
