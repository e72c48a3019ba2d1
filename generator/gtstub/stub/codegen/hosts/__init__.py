"""The languages of hosts, besides C: a file for each, which knows what its hosts need, and a line here."""

from __future__ import annotations

from gtstub.stub.codegen.hosts.fortran import FORTRAN
from gtstub.stub.codegen.hosts.language import HostLanguage

LANGUAGES: dict[str, HostLanguage] = {"fortran": FORTRAN}
"""By the names of the options of `gtstub generate`."""
