"""Finds the packages, so that a new sub-package or data folder cannot be forgotten; everything else is in pyproject.toml."""

from setuptools import find_namespace_packages, setup


def below(folder: str) -> list[str]:
    found = find_namespace_packages(folder, exclude=["__pycache__", "*.__pycache__"])
    return [f"kizuki.{folder}", *(f"kizuki.{folder}.{name}" for name in found)]


setup(packages=[*below("actors"), *below("storage"), *below("benchmarks")])
