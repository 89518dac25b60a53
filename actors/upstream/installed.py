"""The catalogs of the tools on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from .catalog import Catalog
from .files.catalog import FileCatalog
from .formats.formats import FORMATS, Environment
from .opencode.catalog import OpenCodeCatalog, database_path


def installed_catalogs(environment: Environment | None = None, home: Path | None = None) -> tuple[Catalog, ...]:
    """One catalog for each tool that is known, whether or not it was ever used here.

    `environment` is that of the process, and `home` the person's home folder, unless they are given.
    """
    environment = os.environ if environment is None else environment
    home = home or Path.home()
    files = (FileCatalog(form, form.roots(environment, home)) for form in FORMATS)
    return (*files, OpenCodeCatalog(database_path(environment, home)))
