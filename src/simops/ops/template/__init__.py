"""The project that `simops init` writes: real files, checked and run like all the others."""
