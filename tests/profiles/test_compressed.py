"""Compressed profile files: what is written comes back, and what is damaged is told."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.needs import needs
from tracekit.formats.errors import TracekitError
from tracekit.profiles import compressed, files
from tracekit.profiles.profile import Profile


def profile(rows: list[dict[str, object]]) -> Profile:
    report = {"tracekit": "0", "module": "accesses", "trace": "00", "options": {}, "result": {"instructions": rows}}
    return Profile(report, {}, complete=True)


ROWS: list[dict[str, object]] = [{"function": "main", "line": line, "loads": line * line} for line in range(5000)]


def test_what_is_compressed_comes_back_and_is_smaller(tmp_path: Path) -> None:
    plain, small = tmp_path / "a.json", tmp_path / "a.json.zst"
    for path in (plain, small):
        files.save(path, [profile(ROWS)])
        assert files.is_profile(path)
    assert files.load(small)[0].report == files.load(plain)[0].report == profile(ROWS).report
    assert small.stat().st_size * 5 < plain.stat().st_size


@given(st.lists(st.binary(max_size=3000), max_size=20))
def test_text_in_any_parts(parts: list[bytes]) -> None:
    whole = b"".join(compressed.parts(parts))
    assert compressed.text(io.BytesIO(whole)) == b"".join(parts)
    assert compressed.first_byte(io.BytesIO(whole)) == b"".join(parts)[:1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "a.zst"
    files.save(path, [profile(ROWS[:300])])
    whole = path.read_bytes()
    if data.draw(st.booleans()):
        path.write_bytes(whole[: data.draw(st.integers(5, len(whole) - 1))])
    else:
        place = data.draw(st.integers(4, len(whole) - 1))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
    with pytest.raises(TracekitError, match=" is no profile: "):
        files.load(path)


def test_other_compressed_text_is_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "text.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"nothing of the kind"))
    assert not files.is_profile(path)
    with pytest.raises(TracekitError, match="is no profile"):
        files.load(path)


def test_what_decompresses_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zst"
    files.save(path, [profile(ROWS)])
    monkeypatch.setattr(compressed, "MAX_BYTES", 1 << 10)
    with pytest.raises(TracekitError, match="decompresses to more than"):
        files.load(path)


@needs("zstd")
def test_zstd_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    files.save(path, [profile(ROWS)])
    text = subprocess.run(["zstd", "-dc", path], check=True, stdout=subprocess.PIPE).stdout
    assert len(json.loads(text)["result"]["instructions"]) == len(ROWS)
