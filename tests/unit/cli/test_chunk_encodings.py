"""`kroshka chunk FILE`."""

import json
from pathlib import Path

from click.testing import CliRunner

from app.cli.chunk import command


def run(path: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, [str(path), *options], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value, result.output


def test_chunks_are_shown_with_their_breadcrumb_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "Регламент.md"
    path.write_text("# A\n\n## B\n\nтекст [x]\n", encoding="utf-8")
    code, output = run(path, "--lint")
    assert code == 0
    assert "Регламент.md › A › B" in output
    assert "текст [x]" in output
    assert "lint: nothing found" in output


def test_a_file_in_an_old_encoding_is_read_and_cut_as_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(("слово " * 400).encode("cp1251"))
    code, output = run(path, "--json", "--size", "300", "--strategy", "fixed")
    found = [json.loads(line) for line in output.splitlines()]
    assert code == 0
    assert len(found) > 5
    assert {one["strategy"] for one in found} == {"fixed"}
    assert max(one["weight"] for one in found) <= 300
    assert found[0]["text"].startswith("слово слово")
