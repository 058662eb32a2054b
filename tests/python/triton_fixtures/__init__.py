"""Inductor's Triton code without a GPU. Test code only: everything here changes torch for a whole process, so that it
runs in one of its own (`python -m triton_fixtures.run`)."""
