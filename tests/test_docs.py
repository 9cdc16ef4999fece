"""The pages run: every Python block of the README and the guide, and every link within the tree."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md"]


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_python_blocks_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    assert blocks
    assert names["result"].status == "converged"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_readme_commands_are_the_ones_ci_runs():
    readme = (ROOT / "README.md").read_text()
    command = re.search(r"<!-- test command -->\n```sh\n(.*?)```", readme, re.S)
    assert command is not None
    assert "pytest" in command[1]
    assert "README.md" in (ROOT / ".ci" / "run").read_text()
