"""The shape of a configuration: known keys with values of the right kind; all errors are reported at once."""

from __future__ import annotations

import pytest
from support.model.configurations import BELOW, below_root, errors_of, the_partition, the_queue, warnings_of


def test_an_unknown_key_is_refused_where_it_stands() -> None:
    """A key with nothing like it in the schema is only named."""
    assert [f"6:7: {BELOW}[0].colour: unknown key 'colour'"] == errors_of(
        below_root("- colour: red\n  name: a")
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("partition: []", "1:1: partition: unknown key 'partition'; did you mean 'partitions'?"),
        (
            "partitions:\n- queue: []\n  queues: []",
            "2:3: partitions[0].queue: unknown key 'queue'; did you mean 'queues'?",
        ),
        (
            below_root("- Name: a\n  name: a"),
            f"6:7: {BELOW}[0].Name: unknown key 'Name'; did you mean 'name'?",
        ),
        (
            below_root("- {name: a, maxApps: 1}"),
            f"6:17: {BELOW}[0].maxApps: unknown key 'maxApps'; did you mean 'maxapplications'?",
        ),
        (
            below_root("- {name: a, resources: {maximum: {}}}"),
            f"6:29: {BELOW}[0].resources.maximum: unknown key 'maximum'; did you mean 'max'?",
        ),
        (
            below_root("", "preemption: {enable: true}"),
            "6:16: partitions[0].preemption.enable: unknown key 'enable'; did you mean 'enabled'?",
        ),
        (
            below_root("", "placementrules: [{name: user, filters: {}}]"),
            "6:33: partitions[0].placementrules[0].filters: unknown key 'filters'; did you mean 'filter'?",
        ),
    ],
)
def test_a_misspelt_key_comes_with_the_key_that_was_meant(text: str, error: str) -> None:
    """Keys are lower case without separators; the nearest known key of the same mapping is named."""
    assert error in errors_of(text)


@pytest.mark.parametrize(
    ("queue", "error"),
    [
        ("name: [a]", "name: expected a text, not a list"),
        ("parent: maybe", "parent: expected true or false, not the text 'maybe'"),
        (
            "maxapplications: -1",
            "maxapplications: expected a whole number from 0 to 18446744073709551615, not -1",
        ),
        ("properties: [a]", "properties: expected a mapping, not a list"),
        ("queues: {a: b}", "queues: expected a list, not a mapping"),
        ("queues: ''", "queues: expected a list, not the text ''"),
        ("resources: 3", "resources: expected a mapping, not 3"),
        ("limits: [bob]", "limits[0]: expected a mapping, not the text 'bob'"),
        ("resources: {max: {memory: [1]}}", "resources.max.memory: expected a text, not a list"),
        ("childtemplate: [a]", "childtemplate: expected a mapping, not a list"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(queue: str, error: str) -> None:
    """Each is reported with its path, once, and nothing else is made of it."""
    name = "" if queue.startswith("name") else "name: a, "
    (said,) = errors_of(below_root(f"- {{{name}{queue}}}"))

    assert said.partition(": ")[2] == f"{BELOW}[0].{error}"


def test_all_errors_are_reported_at_once_in_order_of_the_file() -> None:
    """Syntax apart, nothing hides anything: keys, kinds, quantities and rules are all reported."""
    text = below_root(
        """
        - name: a b
          parrent: true
          maxapplications: many
          resources:
            max: {memory: 10K}
        - name: c
          name: d
          submitacl: a b c
          limits:
          - users: ["9x"]
        """,
        "nodesortpolicy: {type: Fair}",
    )

    assert [
        "6:13",
        "7:7",
        "8:24",
        "10:23",
        "12:7",
        "13:18",
        "15:9",
        "15:17",
        "17:26",
    ] == [":".join(error.split(":")[:2]) for error in errors_of(text)]


@pytest.mark.parametrize("word", ["on", "no", "yes", "10:30", "123", "true", "0x10"])
def test_names_that_look_like_other_things_stay_text(word: str) -> None:
    """A queue may be called what YAML 1.1 takes for a flag or a time, or what is a number."""
    queues = below_root(f"- {{name: x, submitacl: {word}, properties: {{note: {word}}}}}")

    assert (word, word) == (the_queue(queues).submit_acl, the_queue(queues).properties["note"])


def test_an_old_flag_is_taken_with_a_warning() -> None:
    """`parent: yes` works with the recorded core, so it works here."""
    text = below_root("- {name: a, parent: yes}")

    assert the_queue(text).parent
    assert [
        f"6:25: {BELOW}[0].parent: 'yes' is text in YAML 1.2; it is taken for true, better write that"
    ] == warnings_of(text)


def test_null_is_as_good_as_absent() -> None:
    """Every key may stand there with nothing after it."""
    text = below_root(
        "- {name: a, parent: ~, resources: ~, maxapplications: ~, properties: ~, submitacl: ~, queues: ~,"
        " limits: ~, childtemplate: ~}",
        "preemption:\nnodesortpolicy:\nplacementrules:\nlimits:\nusergroupresolver:",
    )

    assert the_partition(below_root("- name: a")) == the_partition(text)


def test_a_key_given_twice_is_one_error_and_the_first_value_counts() -> None:
    """The rest of the file is still checked."""
    text = below_root("- {name: a, name: b}\n- {name: a}")

    assert [
        f"6:17: {BELOW}[0].name: the key 'name' stands here twice, first on line 6",
        f"7:14: {BELOW}[1].name: duplicate child name found with name 'a', level 1",
    ] == errors_of(text)


def test_braces_in_a_value_come_through_to_the_message() -> None:
    """Messages show what stands in the file, whatever it is."""
    assert [f"6:25: {BELOW}[0].parent: expected true or false, not the text '{{text}}'"] == errors_of(
        below_root("- {name: a, parent: '{text}'}")
    )


def test_what_is_merged_is_read_like_what_is_written() -> None:
    """Anchors and merges keep a file short; the places are those of the anchor."""
    text = below_root("- {name: a, properties: &p {x: 1}}\n- {name: b, properties: {<<: *p, y: 2}}")

    (_, second) = the_partition(text).root.queues

    assert {"x": "1", "y": "2"} == dict(second.properties)
    assert str(second.positions["properties.x"]) == "6:36"


# -------------------------------------------------------------------------------- another top level

_INDENTED = (
    "    partitions:\n    - queues:\n      - name: root\n        submitacl: '*'\n        maxapplication: 1\n"
)
_UNKNOWN = "maxapplication: unknown key 'maxapplication'; did you mean 'maxapplications'?"
_ALONE = "the configuration is the text of {} alone"


@pytest.mark.parametrize(
    ("text", "top", "below"),
    [
        (
            f"kind: ConfigMap\ndata:\n  queues.yaml: |\n{_INDENTED}",
            f"1:1: document: this is a ConfigMap of Kubernetes: {_ALONE.format('data.queues.yaml')}",
            "8:9: partitions[0].queues[0].",
        ),
        (
            f"defs:\n  service.x: 1\n  queues.yaml: |\n{_INDENTED}\nother: 1\n",
            f"1:1: document: this is a file of installation settings: {_ALONE.format('defs.queues.yaml')}",
            "8:9: partitions[0].queues[0].",
        ),
        (
            "queues:\n- name: root\n  submitacl: '*'\n  maxapplication: 1\n",
            "1:1: document: queues belong to a partition, in the list 'partitions'",
            "4:3: queues[0].",
        ),
        (
            "- queues:\n  - name: root\n    submitacl: '*'\n    maxapplication: 1\n",
            "1:1: document: partitions are listed under the key 'partitions'",
            "4:5: [0].queues[0].",
        ),
    ],
)
def test_a_wrong_top_level_hides_nothing_below_it(text: str, top: str, below: str) -> None:
    """What is wrong further down stands at its place in the file."""
    assert [top, f"{below}{_UNKNOWN}"] == errors_of(text)


def test_a_text_that_is_written_in_one_line_has_no_places_in_the_file() -> None:
    """So what is in it is not reported."""
    (error,) = errors_of('data: {queues.yaml: "partitions:\\n- queues: [{nme: root}]"}\n')

    assert error.endswith("the configuration is the text of data.queues.yaml alone")


def test_other_files_are_not_taken_for_configurations() -> None:
    """A manifest is named by its kind, and nothing else is said of it; of others the keys are unknown."""
    (error,) = errors_of("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nspec: {cohort: all}\n")

    assert error.startswith("1:1: document: this is a ClusterQueue of Kubernetes, and not a configuration")
    assert ["1:1: data: unknown key 'data'"] == errors_of("data: {a: b}\n")


def test_a_manifest_is_named_by_its_kind_and_searched_for_the_text() -> None:
    """Also in lists, as a List of Kubernetes has them."""
    text = "kind: List\nitems:\n- data:\n    queues.yaml: |\n      partitions:\n      - {name: p}\n"

    assert (
        "1:1: document: this is a List of Kubernetes: the configuration is the text of "
        "items[0].data.queues.yaml alone"
    ) == errors_of(text)[0]
