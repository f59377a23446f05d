"""Pick and place with a Franka Panda: the scene, the task, its scores and a scripted expert."""
