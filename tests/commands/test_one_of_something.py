"""One of something is not said in the plural."""

from strandline.cli.lineage_text import cut_lines

ONE = {"edges": 1, "filtered": 1, "dependencies": 1, "schemas": 1}


def test_what_an_answer_does_not_show_is_counted_in_words() -> None:
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
