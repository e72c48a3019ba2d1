"""
Signatures of packed entries: OpenSSH's, made and verified by 'ssh-keygen -Y'. A digest says that an entry is whole; a
signature says whose it is.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gtstub import settings
from gtstub.errors import CacheError
from gtstub.trust import check_file
from gtstub.util.regular import opened

NAMESPACE = "gtstub-cache-entry"
"""What is signed, so that a signature of another kind of file is not taken for one of an entry."""

SUFFIX = ".sig"
"""Of the file with the signature, beside the packed entry."""


def signature_of(file: Path) -> Path:
    return file.with_name(file.name + SUFFIX)


def sign(file: Path, key: Path) -> bytes:
    """The signature of a file, with the private key in the file `key`, or with a public one whose agent is running."""
    with file.open("rb") as stream:
        done = _run("sign", ["-n", NAMESPACE, "-f", str(key)], stream)
    if done.returncode != 0:
        raise CacheError(f"'ssh-keygen' cannot sign with key '{key}': {_said(done)}")
    return done.stdout


@contextmanager
def verified(file: Path, allowed_signers: Path) -> Iterator[tuple[BinaryIO, str]]:
    """
    Yields the content of a file, and the name of its signer. `allowed_signers` is a file as ssh-keygen(1) describes it.
    The content is a copy that nobody else can write, so it is still the signed one when it is read.

    Raises CacheError unless one of the signers has signed the file.
    """
    signature = signature_of(file)
    if not signature.is_file():
        raise CacheError(f"'{file}' is not signed: there is no file '{signature}'.")
    if not allowed_signers.is_file():
        raise CacheError(f"The file of allowed signers '{allowed_signers}' does not exist.")
    folder = allowed_signers.absolute().parent
    with opened(allowed_signers) as signers_file, opened(folder) as directory:
        check_file(signers_file, directory, folder, allowed_signers.name)
    options = ["-s", str(signature), "-f", str(allowed_signers)]
    with tempfile.TemporaryFile() as content:
        with file.open("rb") as stream:
            _copy(file, stream, content)
        found = _run("find-principals", options)
        signers = found.stdout.decode(errors="replace").splitlines()
        if found.returncode != 0 or not signers:
            raise CacheError(f"None of the signers in '{allowed_signers}' has signed '{file}': {_said(found)}")
        content.seek(0)
        done = _run("verify", [*options, "-n", NAMESPACE, "-I", signers[0]], content)
        if done.returncode != 0:
            raise CacheError(f"The signature '{signature}' of '{signers[0]}' is not one of '{file}': {_said(done)}")
        content.seek(0)
        yield content, signers[0]


def _copy(file: Path, stream: BinaryIO, content: BinaryIO) -> None:
    size = 0
    while portion := stream.read(2**20):
        size += len(portion)
        if size > settings.cache_max_size():
            raise CacheError(f"'{file}' is larger than {settings.CACHE_MAX_SIZE} allows.")
        content.write(portion)


def _run(action: str, options: list[str], stream: BinaryIO | None = None) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise CacheError("Signatures need 'ssh-keygen' of OpenSSH 8.2 or newer: install openssh-client.")
    return subprocess.run(
        [program, "-Y", action, *options],
        stdin=subprocess.DEVNULL if stream is None else stream,
        capture_output=True,
        check=False,
    )


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr + done.stdout).decode(errors="replace").splitlines()
    text = next((line.strip() for line in lines if line.strip()), f"it ended with {done.returncode}")
    return text if text.endswith(".") else f"{text}."
