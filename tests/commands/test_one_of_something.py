"""Counts of one are printed in the singular."""

from strandline.cli.lineage_text import cut_lines

ONE = {"edges": 1, "filtered": 1, "dependencies": 1, "schemas": 1}


def test_hidden_parts_of_an_answer_are_counted_in_the_singular_too() -> None:
    assert cut_lines({"complete": False, "truncatedBy": "depth", "hidden": {"nodes": 1}}) == [
        "(there is more behind, at least 1 node: a greater --depth shows it)"
    ]
    (said,) = cut_lines({"complete": True, "truncatedBy": None, "hidden": ONE})
    assert said.removeprefix("(not shown: ").removesuffix(")").split(", ") == [
        "1 dataset whose columns at one of the moments no event that is kept tells",
        "1 edge of earlier",
        "failed or ended runs",
        "1 node that was filtered",
        "1 edge of other dependencies",
    ]
