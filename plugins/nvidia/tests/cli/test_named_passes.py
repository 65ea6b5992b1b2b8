"""The pass that `tilefw opt` knows by name makes of lane IR what compiling makes of the kernel."""

from __future__ import annotations

from tilefw.cli.main import main


def test_the_pass_gives_what_compiling_gives(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TILEFW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def code(*words: str) -> list[str]:
        """What is printed, machine code without its places: one file is read from the other's text."""
        assert main(list(words)) == 0
        return [line.partition(" //")[0] for line in capsys.readouterr().out.splitlines()]

    compiled = ("compile", "softmax", "--target", "nvidia-sm80", "--emit")
    code(*compiled, "lane", "-o", "lanes.mlir")
    assert code("opt", "lanes.mlir", "-p", "lane-to-ptx") == code(*compiled, "machine")
