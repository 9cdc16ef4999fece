"""Every figure of the pages on claims and Theorems 1-3, of what `proxgt reproduce` measured.

proxgt reproduce all --out claims
python docs/theory/figures.py claims    writes docs/img/theorem-*.png and reproduce-*.png
"""

import csv
import sys
from pathlib import Path

from PIL import Image

from proxgt import plots
from proxgt.reproduce import CLAIMS, scaling, speedup, topology
from proxgt.reproduce.findings import HEIGHT, WIDTH

PANELS = (
    (scaling, "samples to epsilon"),
    (speedup, "n nodes against one"),
    (topology, "graph by graph"),
)
IMAGES = Path(__file__).parents[1] / "img"
COLOURS = 96  # a picture has few: a palette of these is a third of its size


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
    """A copy of every claim's figure, and three panels a theorem: powers, speedup, graphs."""
    for claim in CLAIMS:
        shrink(results / f"{claim}.png", IMAGES / f"reproduce-{claim}.png")
    tables = [(rows_of(find(results, claim)), claim, title) for claim, title in PANELS]
    for number_, method in enumerate(("SA", "SR-O", "SR-E"), 1):
        image = IMAGES / f"theorem-{number_}.png"
        with plots.drawing(image, (WIDTH, HEIGHT)) as figure:
            panels = figure.subplots(1, 3)
            for axes, (rows, claim, title) in zip(panels, tables, strict=True):
                claim.draw_method(axes, rows, method)
                axes.set_title(title, fontsize=11)
            panels[0].set_ylabel("samples per node")
        shrink(image, image)


def find(results, claim):
    """DIR/scaling.csv."""
    name = claim.__name__.rpartition(".")[2]
    return results / f"{name}.csv"


def shrink(source, target):
    """The picture with a palette of its own."""
    with Image.open(source) as image:
        made = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    made.save(target, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
