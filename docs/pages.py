"""How a page of plain Markdown becomes one of the site: its ```python blocks are cells that run, its links stay within the site."""

import ast
import json
import os
import re
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
CODE = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"^[^=]*\.(plot|legend|axis|ylabel)\(.*\)$")
INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)
OF_OTHERS = (
    "pin",
    "model",
    "data",
    "plant",
    "np",
    "plt",
    "linear",
    "state",
)  # objects whose attributes are not a robot's
NAME = re.compile(r"[A-Za-z_][\w]*(\.\w+)*")
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")
ARTICLE = re.compile(r'<article class="bd-article">(.*?)</article>', re.DOTALL)
# whatever is not text: elements without text to read, and all tags but those of sections, which the search finds by their ids
NO_TEXT = re.compile(
    r'<(script|style|svg)\b.*?</\1>|<a class="headerlink".*?</a>|<(?!/?section\b)[^>]*>',
    re.DOTALL,
)

# documents that stand elsewhere, and the pages that include them
ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "NOTATION.md": "notation.md",
    "SECURITY.md": "security.md",
    "README.md": "index.md",
    "benchmarks/README.md": "benchmarks.md",
    "examples/README.md": "examples.md",
}


def notebook(text):
    """A page as a notebook: what stands after ```python are a cell's tags, such as hide-input."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    cells, end = [], 0
    for block in CODE.finditer(text):
        cells.append(new_markdown_cell(text[end : block.start()].strip()))
        code = block[2].rstrip("\n")
        code += (
            ";" if FIGURE.search(code.splitlines()[-1]) else ""
        )  # the figure, and not what drawing returns
        cells.append(new_code_cell(code, metadata={"tags": block[1].split()}))
        end = block.end()
    cells.append(new_markdown_cell(text[end:]))
    return _numbered(new_notebook(cells=cells))


def _numbered(made):
    """With names of cells that are the same in every build."""
    for k, cell in enumerate(made.cells):
        cell.id = f"cell-{k}"
    made.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python"},
    }
    return made


def example(path):
    """An example as a notebook that needs nothing beside it: what it imports of other examples is written by cells, and its figures are shown."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    module = ast.parse(path.read_text(encoding="utf-8"))
    source = _script(path)
    cells = [new_markdown_cell(f"# {path.stem}\n\n{ast.get_docstring(module)}")]
    for helper in _imported(path):
        cells.append(
            new_code_cell(
                f"%%writefile {helper.name}\n{helper.read_text(encoding='utf-8').rstrip()}"
            )
        )
    if "multiprocessing" in source:  # other processes find their functions in a file
        cells.append(new_code_cell(f"%%writefile {path.name}\n{source}"))
        source = f"from {path.stem} import main"
    cells.append(new_code_cell(source))
    picture = f"{path.stem}.png"
    shown = f"from IPython.display import Image\n\nmain({{}});\nImage({picture!r})"
    main = next(
        f for f in module.body if isinstance(f, ast.FunctionDef) and f.name == "main"
    )
    takes = main.args.args[0].arg if main.args.args else None
    call = {"output": shown.format(repr(picture)), "figures": shown.format("'.'")}.get(
        takes, "main();"
    )
    return _numbered(new_notebook(cells=[*cells, new_code_cell(call)]))


def _script(path):
    """What it is when nobody runs it, without its docstring."""
    text = path.read_text(encoding="utf-8").partition('\nif __name__ == "__main__":')[0]
    return text.split('"""', 2)[2].strip()


def _imported(path):
    """Other examples that it imports, those that they import first."""
    beside = {
        other.stem: other
        for folder in (ROOT / "examples", path.parent)
        for other in folder.glob("*.py")
    }
    names = re.findall(
        r"^(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    found = [beside[name] for name in names if name in beside]
    return list(dict.fromkeys(other for one in found for other in (*_imported(one), one)))


def write_notebooks(folder, made_folder):
    """Pages with code, and the examples, as notebooks to take away; and a list of the examples' ones."""
    import nbformat

    made = {
        path.relative_to(DOCS).with_suffix("").as_posix(): notebook(
            path.read_text(encoding="utf-8")
        )
        for path in DOCS.rglob("*.md")
        if CODE.search(path.read_text(encoding="utf-8"))
    }
    for path in sorted((ROOT / "examples").rglob("*.py")):
        if '\nif __name__ == "__main__":' in path.read_text(encoding="utf-8"):
            made[path.relative_to(ROOT).with_suffix("").as_posix()] = example(path)
    for name, book in made.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(book, folder / f"{name}.ipynb")
    links = (
        f"<li><a href='notebooks/{n}.ipynb' download>{n}.ipynb</a></li>"
        for n in made
        if n.startswith("examples/")
    )
    (made_folder / "notebooks.html").write_text(
        f"<ul>{''.join(links)}</ul>", encoding="utf-8"
    )


def offer_notebook(app, pagename, templatename, context, doctree):
    """Say to the page's template where its notebook is."""
    path = DOCS / f"{pagename}.md"
    if path.exists() and CODE.search(path.read_text(encoding="utf-8")):
        context["notebook"] = f"{pagename}.ipynb"


def without_code(folder):
    """Pages for which no kernel is started."""
    pages = (
        path
        for path in folder.rglob("*.md")
        if not CODE.search(path.read_text(encoding="utf-8"))
    )
    return [path.relative_to(folder).as_posix() for path in pages]


def links(app, docname, source):
    """Include documents from outside of docs/, and lead links to them to the pages that include them."""
    folder = (DOCS / docname).parent

    def included(match):
        path = (folder / match[1]).resolve()
        return rewritten(path.read_text(encoding="utf-8"), path.parent, folder)

    source[0] = INCLUDE.sub(included, rewritten(source[0], folder, folder))


def rewritten(text, written_in, read_in):
    """The text of a document in one folder, with links as a page in another needs them."""

    def lead(match):
        target = match[2]
        if re.match(r"[a-z]+:", target):
            return match[0]
        path = (written_in / target).resolve()
        inside = path.relative_to(ROOT).as_posix()
        if inside in ELSEWHERE:
            path = DOCS / ELSEWHERE[inside]
        return (
            match[1]
            + Path(os.path.relpath(path, read_in)).as_posix()
            + (match[3] or "")
            + match[4]
        )

    return LINK.sub(lead, text)


def crossrefs(app, doctree, docname):
    """Lead `robot.assemble(...)`, `control.PID` and `sarrus.load` to the API reference."""
    from docutils import nodes
    from sphinx.util.nodes import make_refnode

    known = {entry[0]: entry for entry in app.env.get_domain("py").get_objects()}
    for literal in list(doctree.findall(nodes.literal)):
        if isinstance(literal.parent, nodes.reference | nodes.title) or not (
            name := NAME.match(literal.astext())
        ):
            continue
        first, *rest = name[0].split(".")
        candidates = [name[0], f"sarrus.{name[0]}"]
        if rest and first not in ("sarrus", *OF_OTHERS):
            candidates += [f"sarrus.Mechanism.{rest[0]}"]
        if first == "run" and rest:
            candidates = [f"sarrus.Trajectory.{rest[0]}"]
        if not rest and first not in (
            "joint",
            "constraint",
            "name",
            "gravity",
            "save",
        ):  # words of their own
            candidates += [f"sarrus.Mechanism.{first}", f"sarrus.Builder.{first}"]
        found = next((known[c] for c in candidates if c in known), None)
        if found:
            full, _, _, target, anchor, _ = found
            literal.replace_self(
                make_refnode(
                    app.builder, docname, target, anchor, literal.deepcopy(), full
                )
            )


def strip(app, exception):
    """Leave out of the site what only debuggers of the theme read."""
    for path in Path(app.outdir).rglob("*.map"):
        path.unlink()


def write_texts(app, exception):
    """Write the texts of all pages into a script, from which search_files.js shows excerpts."""
    if exception or app.builder.format != "html":
        return
    texts, site = {}, Path(app.outdir)
    for name in sorted(app.env.found_docs):
        page = app.builder.get_target_uri(name)
        found = ARTICLE.search((site / page).read_text(encoding="utf-8"))
        text = " ".join(NO_TEXT.sub("", found[1]).split()) if found else ""
        texts[page] = f'<div role="main">{text}</div>'
    made = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    (site / "page_texts.js").write_text(f"PAGE_TEXTS={made}\n", encoding="utf-8")
