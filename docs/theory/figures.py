"""The figures of the pages on Theorems 1-3, of what `proxgt reproduce` measured.

proxgt reproduce scaling --out claims   (and speedup, and topology)
python docs/theory/figures.py claims    writes docs/img/theorem-1.png, theorem-2.png, theorem-3.png
"""

import csv
import sys
from pathlib import Path

from proxgt import plots
from proxgt.reproduce import scaling, speedup, topology

PANELS = (
    (scaling, "samples to epsilon"),
    (speedup, "n nodes against one"),
    (topology, "graph by graph"),
)
IMAGES = Path(__file__).parents[1] / "img"


def rows_of(path):
    """The rows of a table, numbers as numbers."""
    with path.open() as file:
        return [{key: number(text) for key, text in row.items()} for row in csv.DictReader(file)]


def number(text):
    """The number, or the text that is none."""
    try:
        return float(text)
    except ValueError:
        return text


def main(results):
    """Three panels for every theorem: its powers, its speedup, its graphs."""
    tables = [(rows_of(find(results, claim)), claim, title) for claim, title in PANELS]
    for number_, method in enumerate(("SA", "SR-O", "SR-E"), 1):
        with plots.drawing(IMAGES / f"theorem-{number_}.png", (15.6, 4.2)) as figure:
            panels = figure.subplots(1, 3)
            for axes, (rows, claim, title) in zip(panels, tables, strict=True):
                claim.draw_method(axes, rows, method)
                axes.set_title(title, fontsize=11)
            panels[0].set_ylabel("samples per node")


def find(results, claim):
    """DIR/scaling.csv."""
    name = claim.__name__.rpartition(".")[2]
    return results / f"{name}.csv"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
