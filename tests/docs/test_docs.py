"""Tests of the site of docs/: it builds, no link is dead, nothing is left out of it."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from docs_site import Site, build

import memplan as mp
import memplan.cli
import memplan_lab.cli
from memplan.ask.supports import REASONS
from memplan.base.notes import Code
from memplan.cli import output
from memplan.solvers import registry

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def hook(name: str) -> ModuleType:
    """Return a hook of the site as a module; none needs MkDocs to be imported."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def command_paths(group: Any, words: tuple[str, ...] = ("memplan",)) -> set[str]:
    """Return every command that help shows with the words before it, groups included."""
    found: set[str] = set()
    for name in group.commands:
        command = group.get_command(None, name)
        if command.hidden:
            continue
        found.add(" ".join((*words, name)))
        if hasattr(command, "commands"):
            found |= command_paths(command, (*words, name))
    return found


COMMANDS = command_paths(typer.main.get_command(memplan.cli.app)) | command_paths(
    typer.main.get_command(memplan_lab.cli.app), ("memplan-lab",)
)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Return the site, built strictly."""
    return build(tmp_path_factory)


def test_no_link_is_dead_and_nothing_is_loaded(site: Site) -> None:
    """Tests every link, every part of a page that a link names, and every picture and script."""
    assert len(site.pages) > 30
    assert site.faults() == []


def test_the_navigation_leads_to_every_page(site: Site) -> None:
    """Tests that every page can be reached by links, so that no reader has to know its name."""
    assert site.unreachable() == set()


def test_every_command_is_in_the_reference(site: Site) -> None:
    """Tests a section for each command, made of the program."""
    anchors = site.anchors("reference/commands.html")
    assert {each.replace(" ", "-") for each in COMMANDS} <= anchors


def test_every_public_name_is_in_the_reference(site: Site) -> None:
    """Tests that what `import memplan` offers has an entry with its docstring."""
    page = (site.folder / "reference" / "api.html").read_text()
    anchors = site.anchors("reference/api.html")
    for name in sorted(set(mp.__all__) - {"__version__"}):
        assert any(re.fullmatch(rf"memplan(\.\w+)*\.{name}", each) for each in anchors), name
    assert "__version__" in page


def test_the_search_knows_every_page(site: Site) -> None:
    """Tests words of a page, of the commands and of a docstring in the index."""
    index = json.loads((site.folder / "search" / "search_index.json").read_text())
    texts = " ".join(each["text"] for each in index["docs"])
    for words in ("irreducible infeasible subset", "Place every buffer", "immutable, as columns"):
        assert words.lower() in texts.lower()


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ('<a href="b.html">', "b.html leads nowhere"),
        ('<a href="#part">', "#part: there is no such part"),
        ('<a href="index.html#p">', "index.html#p: there is no such part"),
        ('<img src="x.png">', "x.png leads nowhere"),
        ('<a href="http://example.org">', "is no address of another site"),
        ('<a href="https://localhost/a">', "is no address of another site"),
        ('<script src="https://example.org/a.js"></script>', "is loaded from a network"),
        ('<script src="//example.org/a.js"></script>', "is loaded from a network"),
        ('<link rel="stylesheet" href="https://example.org/a.css">', "loaded from a network"),
        ('<p style="background: url(https://example.org/a.png)">', "loaded from a network"),
    ],
)
def test_a_dead_link_is_found(tmp_path: Path, html: str, fault: str) -> None:
    """Tests that the reader of sites finds what it looks for."""
    (tmp_path / "index.html").write_text('<p id="top"><a href="#top">')
    assert Site(tmp_path).faults() == []
    (tmp_path / "a.html").write_text(html)
    assert any(fault in each for each in Site(tmp_path).faults())


def test_a_page_that_nothing_leads_to_is_found(tmp_path: Path) -> None:
    """Tests pages that only a page beside the navigation names."""
    link = '<a class="md-nav__link" href="{}.html">'
    (tmp_path / "index.html").write_text(link.format("a") + '<a href="b.html">')
    (tmp_path / "a.html").write_text(link.format("index"))
    (tmp_path / "b.html").write_text(link.format("index"))
    assert Site(tmp_path).unreachable() == {"b.html"}


def test_a_style_from_elsewhere_is_found(tmp_path: Path) -> None:
    """Tests fonts and styles that a style sheet loads."""
    (tmp_path / "a.css").write_text("@import 'https://example.org/a.css'; a { src: url(b.woff) }")
    assert Site(tmp_path).faults() == ["a.css: https://example.org/a.css is loaded from a network"]


def test_links_of_the_readme_lead_somewhere() -> None:
    """Tests files and folders that README.md names, and the parts of pages among them."""
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text())
    assert len(links) > 10
    for link in links:
        path, _, part = link.partition("#")
        if path.startswith("https://"):
            continue
        assert (ROOT / path).exists(), link
        assert not part, f"{link}: name a page, parts of it move"


def test_the_guide_names_every_command() -> None:
    """Tests that docs/cli.md, which says what commands are for, leaves none of ours out."""
    guide = (DOCS / "cli.md").read_text()
    for program, word in (each.split() for each in COMMANDS if each.count(" ") == 1):
        if program == "memplan":
            assert re.search(rf"^memplan {word}\b(?!-)", guide, re.MULTILINE), word


def test_the_guide_has_the_exit_codes() -> None:
    """Tests the table of exit codes against the numbers that the program uses."""
    codes = {
        value
        for name, value in vars(output).items()
        if name.isupper() and name[0] != "_" and isinstance(value, int)
    }
    told = re.findall(r"^\| (\d+) \|", (DOCS / "cli.md").read_text(), re.MULTILINE)
    assert {int(each) for each in told} == codes


def test_the_install_page_has_the_extras() -> None:
    """Tests the table of extras against the package."""
    files = (ROOT / "pyproject.toml", ROOT / "lab" / "pyproject.toml")
    extras = [tomllib.loads(file.read_text())["project"]["optional-dependencies"] for file in files]
    rows = re.findall(r"^\| (`.+?) \|", (DOCS / "start.md").read_text(), re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert told == set(extras[0]) | set(extras[1])


def test_commands_are_told_as_they_are() -> None:
    """Tests arguments, options, defaults and what is required, of the program itself."""
    text = hook("cli_reference").commands()
    plan = text[text.index("## memplan plan ") : text.index("## memplan verify ")]
    assert "memplan plan [OPTIONS] INPUT" in plan
    assert re.search(r"^\| `-c, --capacity SIZE` \| Limit on the peak", plan, re.MULTILINE)
    assert re.search(r"^\| `--minimize` \| Look for the smallest peak", plan, re.MULTILINE)
    assert re.search(r"`--solver .*\[default: auto\] \|$", plan, re.MULTILINE)
    record = text[text.index("## memplan record ") :]
    assert re.search(r"`-o, --output FILE` \| Write the trace .* as JSON. \[required\]", record)
    assert "memplan-lab bench [OPTIONS] [NAME...]" in text
    assert "### memplan-lab learn train { #memplan-lab-learn-train }" in text


def test_each_solver_of_the_core_has_a_table_of_its_options(site: Site) -> None:
    """Tests that the pages ask for each table once, and that one is made of the registry.

    `auto` has the options of its parts, and `many_objects` has those of `single_object`.
    """
    pattern = hook("cli_reference").OPTIONS
    pages = [page.read_text() for page in DOCS.glob("*.md")]
    asked = [name for page in pages for name in pattern.findall(page)]
    solvers = {name for name, solver in registry.SOLVERS.items() if solver.core and solver.options}
    assert sorted(asked) == sorted(solvers - {"auto", "many_objects"})
    page = (site.folder / "solvers.html").read_text()
    for name, _, says in registry.options_of("prover"):
        assert f">{name}</" in page
        assert html.escape(says, quote=False) in page
    table = hook("cli_reference").option_table("exact").splitlines()
    assert "| `nogoods` | on | remember refuted subproblems and compare by dominance |" in table
    assert not any(row.startswith("| `learning`") for row in table)


def test_the_site_lists_every_code_of_notes() -> None:
    """Tests that each code has a sentence beside it, and that a page asks for the table."""
    reference = hook("cli_reference")
    told = re.findall(r"^\| `(.+)` \| .+ \|$", reference.note_table(), re.MULTILINE)
    assert told == list(Code)
    assert reference.NOTES in (DOCS / "sources.md").read_text()


def test_the_site_says_what_does_not_combine() -> None:
    """Tests a row for each pair that `memplan.plan` refuses, with its reason."""
    reference = hook("cli_reference")
    rows = reference.reason_table().splitlines()[2:]
    assert len(rows) == len(REASONS)
    assert all(any(row.endswith(f"| {why} |") for row in rows) for why in REASONS.values())
    assert reference.REASONS in (DOCS / "concepts.md").read_text()


def test_the_study_switches_off_what_there_is() -> None:
    """Tests that the techniques that `make study` switches off are options of their solvers."""
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    for solver in ("minimalloc", "telamalloc", "exact", "prover"):
        found = re.search(rf"^{solver.upper()} := (.+)$", makefile, re.MULTILINE)
        assert found is not None
        assert set(found[1].split()) <= registry.SOLVERS[solver].options.keys()


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"])
def test_paths_that_contributors_read_exist(page: str) -> None:
    """Tests that a page about the code names files and folders that are there."""
    named = re.findall(r"`([\w.-]+/[\w./-]*)`", (ROOT / page).read_text())
    bases = [ROOT / base for base in (".", "memplan", "lab/memplan_lab", "core", "core/src")]
    assert named or page == "SECURITY.md"
    for path in named:
        is_made = path.startswith("build/") or "NAME" in path
        assert is_made or any((base / path).exists() for base in bases), path


def test_a_notebook_becomes_a_page() -> None:
    """Tests text, code, and outputs of all kinds."""
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {
            "cell_type": "code",
            "source": ["print(1)"],
            "outputs": [
                {"output_type": "stream", "text": ["1\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
                {"output_type": "display_data", "data": {"text/html": ["<b>\n\n3</b>"]}},
                {"output_type": "display_data", "data": {"image/png": "QUJD\n"}},
            ],
        },
        {"cell_type": "code", "source": [], "outputs": []},
    ]
    page = hook("notebook").markdown({"cells": cells}, "a.ipynb")
    assert page.startswith("# Title\n\nThis page is [a notebook](a.ipynb).\nwords\n")
    assert "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```text\n2\n```" in page
    assert "<div><b>\n3</b></div>" in page
    assert 'src="data:image/png;base64,QUJD"' in page
    bare = hook("notebook").markdown({"cells": cells[:1]}, "a.ipynb")
    assert "This page is [a notebook](a.ipynb): run it to see what its cells show." in bare


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        ("in half-open ranges", ["half-open"]),
        ("13.6 ms of 1,048,576 bytes", ["13.6 ms", "1,048,576 bytes"]),
        ("up to 1 048 576", ["1 048 576"]),
        ("<code>-o, --output FILE</code>", ["-o, --output FILE"]),
        ("<code>memplan-lab bench challenging --data FOLDER --timeout 60</code>", ["memplan-lab"]),
        ('<a href="a-b.html">two words</a>', []),
        ("a - b", []),
    ],
)
def test_words_and_figures_of_a_table_stay_whole(cell: str, kept: list[str]) -> None:
    """Tests what is kept on a line, and that neither the text nor a tag is changed."""
    page = f"<table><tr><td>{cell}</td></tr></table>"
    found = hook("accessible").keep_whole(page)
    whole = re.findall(r'<span class="whole">(.*?)</span>', found)
    assert [each for each in whole if each in kept] == kept
    assert bool(whole) == bool(kept)
    assert re.sub(r"</?span[^>]*>", "", found) == page


def test_text_outside_of_tables_is_left_as_it_is() -> None:
    """Tests prose and blocks of code; only a short name in code is kept whole."""
    keep_whole = hook("accessible").keep_whole
    for page in ("<p>half-open, 5 ms</p>", "<pre><code>memplan-lab bench</code></pre>"):
        assert keep_whole(page) == page
    found = keep_whole("<p><code>memplan-lab</code></p>")
    assert found == '<p><code><span class="whole">memplan-lab</span></code></p>'


def test_a_page_shows_the_live_plan_where_it_asks_for_it() -> None:
    """Tests the frame, and the drawing of all 174 buffers that leads to it, without blank lines."""
    live_plan = hook("live_plan")
    still = live_plan.drawing(ROOT / live_plan.NETWORK)
    assert still.count("<rect") == 174
    assert "<title>" not in still
    html = live_plan.frame(still)
    assert f'<iframe src="{live_plan.REPORT}"' in html
    assert f'<a class="live-plan__still" href="{live_plan.REPORT}">' in html
    assert "\n\n" not in html
    assert live_plan.MARK in (DOCS / "index.md").read_text()


def test_a_console_is_copied_as_its_commands() -> None:
    """Tests a prompt, what a command prints, one over two lines, and code that is no console."""
    console = '<pre><code><span class="gp">$ </span>a &lt;b \\\n    c\n<span class="go">x</span>\n'
    page = f'{console}<span class="gp">$ </span>d "e"\n</code></pre>'
    found = hook("console").note_commands(page)
    assert 'data-copy="a &lt;b \\&#10;    c&#10;d &quot;e&quot;"' in found
    plain = "<pre><code>a\n</code></pre><p><code>b</code></p>"
    assert hook("console").note_commands(plain) == plain
    assert hook("console").note_commands(plain + page) == plain + found
