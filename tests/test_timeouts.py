"""Every test has a timeout: one that hangs fails, names itself and says where it was, and the run goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_HANGS = """
import threading

def test_hangs():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

def test_goes_on():
    pass
"""


@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_a_test_that_hangs_fails_and_is_named(tmp_path: Path, pytestconfig: pytest.Config, workers: str) -> None:
    assert 0 < float(pytestconfig.getini("timeout")) <= 300
    hanging = tmp_path / "test_hanging.py"
    hanging.write_text(_HANGS)
    command = [sys.executable, "-m", "pytest", "-c", str(pytestconfig.inipath), "--rootdir", str(tmp_path)]
    options = ["-p", "no:cacheprovider", "-n", workers, "--timeout", "1"]
    run = subprocess.run([*command, *options, str(hanging)], capture_output=True, text=True)
    assert run.returncode == 1
    [failed] = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
    assert "test_hanging.py::test_hangs" in failed and "Timeout" in run.stdout
    assert "F." in run.stdout.split() and ">       lock.acquire()" in run.stdout
