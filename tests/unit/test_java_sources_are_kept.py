"""The Java sources of later commands are read before a command's work begins: its unpacked files may be swept from /tmp meanwhile."""

import importlib.resources

from hivekeeper.cluster import java_classes


class Gone:
    def joinpath(self, *_names):
        raise FileNotFoundError("swept")


def test_sources_that_are_swept_later_are_there(monkeypatch):
    java_classes.read_sources.cache_clear()
    java_classes.keep_sources()
    monkeypatch.setattr(java_classes, "files", lambda _package: Gone())
    top = importlib.resources.files("hivekeeper.cluster").joinpath("java")
    folders = [one.name for one in top.iterdir() if one.is_dir()]
    assert "copy" in folders
    for folder in (java_classes.CORE, *folders):
        assert java_classes.read_sources(folder)
