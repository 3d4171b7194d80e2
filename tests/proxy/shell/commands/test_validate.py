"""`licorne validate` reads queues as people have them: a file, a ConfigMap, a pipe."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.proxy.simulation_builders import written
from typer.testing import CliRunner, Result

from licorne.proxy.kubernetes.predicates.preference_policy import CurrentCluster, preference_policies
from licorne.proxy.shell.command_line import application

_CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs}
data:
  log.level: INFO
  queues.yaml: |
    partitions:
      - name: default

        queues:
          - {name: root, submitacl: "*", queues: [{name: a, resources: {max: {memory: 1Gi}}}]}
  other: "partitions: [{name: 1}]"
"""


def _validated(*arguments: str | Path, text: str | None = None) -> Result:
    return CliRunner().invoke(application, ["validate", *map(str, arguments)], input=text)


def test_a_config_map_is_read_where_its_queues_stand(tmp_path: Path) -> None:
    """Errors have the places of the whole file; the other values are not read."""
    valid = written(tmp_path / "valid.yaml", _CONFIG_MAP)
    wrong = written(tmp_path / "wrong.yaml", _CONFIG_MAP.replace("1Gi", "many"))

    result = _validated(valid, wrong)

    assert 3 == result.exit_code
    assert f"{valid}: valid" in result.stdout
    column = wrong.read_text(encoding="utf-8").splitlines()[10].index("many") + 1
    assert f"{wrong}:11:{column}: partitions[0].queues[0].queues[0].resources.max.memory: " in result.stdout


@pytest.mark.parametrize("kind", ["ConfigMap", '"ConfigMap"'])
def test_standard_input_is_a_dash(kind: str) -> None:
    """As `kubectl get configmap -o yaml` writes it, or a plain file."""
    pipes = (
        _CONFIG_MAP.replace("kind: ConfigMap", f"kind: {kind}"),
        "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]",
    )

    assert ["-: valid", "-: valid"] == [_validated("-", text=text).stdout.splitlines()[-1] for text in pipes]


def test_a_config_map_without_queues_is_no_configuration(tmp_path: Path) -> None:
    """It is refused as any other text."""
    result = _validated(written(tmp_path / "c.yaml", _CONFIG_MAP.replace("queues.yaml", "settings.yaml")))

    assert 3 == result.exit_code


@pytest.mark.parametrize("name", preference_policies(CurrentCluster()))
def test_a_config_map_may_name_the_policies_of_pods(name: str) -> None:
    """Queues for another resource manager may not."""
    order = f"- name: default\n        nodesortpolicy: {{type: policy/{name}}}\n"
    text = _CONFIG_MAP.replace("- name: default\n", order)
    queues = (
        f"partitions: [{{name: default, nodesortpolicy: {{type: policy/{name}}}, queues: [{{name: root}}]}}]"
    )

    found = [_validated("-", text=each) for each in (text, queues)]

    assert [0, 3] == [result.exit_code for result in found]
    assert f"no policy '{name}' was given" in found[1].stdout
