"""YAML is read the same, mistakes included, with libyaml and without."""

from __future__ import annotations

import pytest
import yaml

from hloopt.yaml_nodes import NotYaml, compose


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML is built without libyaml")


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        *(("é: *b", 3), ("a:\n  - b\n c: d", 10), ("passes:\n\t- dce", 8), ("é\x00x: 1", 1)),
        *(("a: b: c", 4), ("é: \x07", 3)),
    ],
)
def test_a_mistake_has_its_place_in_characters(text: str, offset: int) -> None:
    with pytest.raises(NotYaml) as caught:
        compose(text)
    assert caught.value.offset == offset
    assert not caught.value.is_depth


@pytest.mark.parametrize(
    "text", ["[" * 200 + "]" * 200, "[" * 200_000, "{a: " * 5000, "- " * 100_000 + "x", "? " * 5000]
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(NotYaml) as caught:
        compose(text)
    assert caught.value.is_depth


def test_nodes_have_their_places_and_tags() -> None:
    node = compose("é: [1, x]\nb: &a {c: *a}\n")
    assert isinstance(node, yaml.MappingNode)
    (key, values), (_, again) = node.value
    assert (key.start_mark.index, values.start_mark.index) == (0, 3)
    assert [item.tag.rpartition(":")[2] for item in values.value] == ["int", "str"]
    assert again.value[0][1] is again  # an alias is the node itself


def test_an_empty_text_has_no_node() -> None:
    assert compose("# nothing\n") is None
