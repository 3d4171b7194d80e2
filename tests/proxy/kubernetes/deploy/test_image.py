"""What the Dockerfile builds, as far as that can be seen without Docker: its files, and its installation."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.kubernetes.installation import MANIFESTS
from support.waiting import PROGRAM_SECONDS

import licorne

pytestmark = pytest.mark.kubernetes

ROOT = MANIFESTS.parents[1]
DOCKERFILE = (MANIFESTS / "Dockerfile").read_text()
IGNORED = (MANIFESTS / "Dockerfile.dockerignore").read_text().splitlines()


def run(*command: str | Path, folder: Path) -> str:
    """Run a command; return what it says."""
    ran = subprocess.run(  # noqa: S603 - commands of the Dockerfile
        command, cwd=folder, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_image_has_the_version_of_the_package() -> None:
    """In the manifest, and in the command that builds it."""
    documents = list(yaml.safe_load_all((MANIFESTS / "4-scheduler.yaml").read_text()))
    (container,) = documents[0]["spec"]["template"]["spec"]["containers"]

    assert f"licorne:{licorne.__version__}" == container["image"]
    assert f"docker build -t licorne:{licorne.__version__} -f deploy/kubernetes/Dockerfile ." in DOCKERFILE


def test_the_container_runs_as_the_user_of_the_image() -> None:
    """Who changes one changes the other."""
    documents = list(yaml.safe_load_all((MANIFESTS / "4-scheduler.yaml").read_text()))
    context = documents[0]["spec"]["template"]["spec"]["securityContext"]

    assert f"USER {context['runAsUser']}:{context['runAsGroup']}\n" in DOCKERFILE


def test_the_container_can_write_temporary_files_alone() -> None:
    """In memory: the webhook hands a key over to TLS in one."""
    documents = list(yaml.safe_load_all((MANIFESTS / "4-scheduler.yaml").read_text()))
    spec = documents[0]["spec"]["template"]["spec"]
    (container,) = spec["containers"]

    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert ["/tmp"] == [mount["mountPath"] for mount in container["volumeMounts"]]  # noqa: S108 - of the container
    assert ["Memory"] == [volume["emptyDir"]["medium"] for volume in spec["volumes"]]


def test_the_image_runs_what_is_installed_in_it(tmp_path: Path) -> None:
    """The steps of the Dockerfile by hand: the files it copies, the wheel, its extra, the entry point."""
    rooms = [line.rstrip("/") for line in IGNORED if re.fullmatch(r"[a-z]+", line)]
    source = tmp_path / "sources" / "licorne"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.so"))
    for room in rooms:
        shutil.rmtree(source / room, ignore_errors=True)
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment, folder=tmp_path)
    pip = environment / "bin" / "pip"
    run(pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / "wheels", ".", folder=source)
    (wheel,) = (tmp_path / "wheels").glob("licorne-*.whl")

    run(pip, "install", "--quiet", f"{wheel}[kubernetes]", folder=tmp_path)

    entry = re.findall(r'^ENTRYPOINT \["(\w+)", "(\w+)"\]$', DOCKERFILE, re.MULTILINE)
    assert [("licorne", "kubernetes")] == entry
    said = run(environment / "bin" / "licorne", "kubernetes", "--help", folder=tmp_path)
    assert "--health-address" in said
    program = "from licorne.proxy.kubernetes.running import pod_scheduler; print(pod_scheduler.__file__)"
    assert str(environment) in run(environment / "bin" / "python", "-c", program, folder=tmp_path)
