"""Checks of plugins are asked for as `PLUGIN:NAME`, and found when a launch needs them."""

from __future__ import annotations

import pytest

from tilefw.api.errors import PluginError, UsageError
from tilefw.runtime import config
from tilefw.runtime.checks import launch_checks

SOURCE = '''
TILEFW_API = (0, 1)
from tilefw.api import CheckInfo, hookimpl
@hookimpl
def tilefw_checks():
    return {"stores": CheckInfo("stores", "counts stores", observers=("some_module:Stores",)), "number": 3}
'''


def test_a_check_of_a_plugin_is_found_by_its_name(install, registry, monkeypatch) -> None:
    install("watcher", SOURCE)
    monkeypatch.setattr(launch_checks, "registry", lambda: registry)
    assert config.parse_checks("bounds,watcher:stores") == {"bounds", "watcher:stores"}
    assert launch_checks.observers({"bounds", "watcher:stores"}) == ("some_module:Stores",)
    assert launch_checks.observers({"bounds", "races"}) == ()


def test_a_check_that_no_plugin_has_is_a_mistake_of_the_user(install, registry, monkeypatch) -> None:
    install("watcher", SOURCE)
    monkeypatch.setattr(launch_checks, "registry", lambda: registry)
    with pytest.raises(UsageError, match="no check called 'store'") as caught:
        launch_checks.observers({"watcher:store"})
    assert caught.value.code == "TFW0901" and "stores" in (caught.value.help or "")
    with pytest.raises(UsageError, match="no plugin is called 'nobody'"):
        launch_checks.observers({"nobody:stores"})
    with pytest.raises(UsageError, match="no check 'watcher:'"):
        config.parse_checks("watcher:")


def test_what_is_no_check_is_a_mistake_of_the_plugin(install, registry, monkeypatch) -> None:
    install("watcher", SOURCE)
    monkeypatch.setattr(launch_checks, "registry", lambda: registry)
    with pytest.raises(PluginError, match="is not a tilefw") as caught:
        launch_checks.observers({"watcher:number"})
    assert caught.value.code == "TFW0514"
