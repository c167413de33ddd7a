"""Tests of tests/bench/draw_results: pages, broken measurements and Markdown tables; and of the links of docs/decisions."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parent / "draw_results"
TOPICS = 'speed = "Speed"\n'
MACHINES = '[laptop]\nprocessor = "two cores"\n'
GOOD = {
    "title": '"Half of memory"', "question": '"How fast is half of memory?"', "date": "2026-11-30", "commit": '"abc1234"',
    "machine": '"laptop"', "command": '"tierd | tee"', "model": '"demo"', "weights": '"planted"', "status": '"latest"',
    "finding": '"It is fast."', "columns": '[{ name = "row", unit = "", counts = "Name" }, { name = "rate", unit = "tokens/s", counts = "Median" }]',
    "rows": '[["a|b", "1.50"]]',
}


class DrawResults(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.results = self.folder / "results"
        (self.results / "speed").mkdir(parents=True)
        (self.results / "topics.toml").write_text(TOPICS)
        (self.results / "machines.toml").write_text(MACHINES)

    def write(self, name="half", **changes):
        data = {**GOOD, **changes}
        text = "".join(f"{key} = {value}\n" for key, value in data.items() if value is not None)
        (self.results / "speed" / f"{name}.toml").write_text(text)

    def run_program(self, *arguments, text=None):
        return subprocess.run([sys.executable, PROGRAM, "--results", self.results, *arguments], input=text, capture_output=True, text=True)

    def refused(self, *words):
        run = self.run_program()
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)
        self.assertFalse((self.folder / "RESULTS.md").exists())

    def test_page_has_table_finding_and_kind_of_weights(self):
        self.write()
        self.assertEqual(self.run_program().returncode, 0)
        page = (self.folder / "RESULTS.md").read_text()
        for text in ("| row | rate (tokens/s) |", "| a\\|b | 1.50 |", "**Finding:** It is fast.", "weights: **planted**", "abc1234", "tierd | tee"):
            self.assertIn(text, page)
        self.assertEqual(self.run_program("--check").returncode, 0)

    def test_check_names_the_line_that_differs_and_writes_nothing(self):
        self.write()
        self.run_program()
        page = self.folder / "RESULTS.md"
        changed = page.read_text().replace("1.50", "2.50")
        page.write_text(changed)
        run = self.run_program("--check")
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"line {changed[:changed.index('2.50')].count(chr(10)) + 1} ", run.stderr)
        self.assertEqual(page.read_text(), changed)
        page.unlink()
        self.assertEqual(self.run_program("--check").returncode, 1)

    def test_unknown_key(self):
        self.write(colour='"red"')
        self.refused("speed/half.toml", "colour", "unknown key")

    def test_each_required_key_is_missed_by_its_name(self):
        for key in GOOD:
            with self.subTest(key):
                self.write(**{key: None})
                self.refused("speed/half.toml", f": {key}: is missing")

    def test_row_of_another_width(self):
        self.write(rows='[["a", "1"], ["b", "2", "3"]]')
        self.refused("speed/half.toml", "rows[2]", "3 cells", "2 columns")

    def test_figure_that_is_no_string(self):
        self.write(rows='[["a", 1.50]]')
        self.refused("speed/half.toml", "rows[1]", "strings")

    def test_values_that_are_not_known(self):
        for key, value in (("weights", '"good"'), ("status", '"old"'), ("machine", '"cray"')):
            with self.subTest(key):
                self.write(**{key: value})
                self.refused("speed/half.toml", key, value)

    def test_types(self):
        for key, value in (("date", '"2026-11-30"'), ("date", "2026-11-30T10:00:00"), ("title", "3"), ("rows", '"none"'), ("finding", '" "')):
            with self.subTest(f"{key} {value}"):
                self.write(**{key: value})
                self.refused("speed/half.toml", f": {key}: ")

    def test_columns(self):
        same = '{ name = "row", unit = "", counts = "Name" }'
        for columns in ('[{ name = "row", unit = "" }, ' + same + "]", '[{ name = "row", unit = "", counts = "" }, { name = "x", unit = "", counts = "y" }]',
                        f"[{same}, {same}]"):
            with self.subTest(columns):
                self.write(columns=columns)
                self.refused("speed/half.toml", "columns[")

    def test_text_that_is_no_toml(self):
        (self.results / "speed" / "half.toml").write_text("title = \n")
        self.refused("speed/half.toml", "TOML")

    def test_folder_that_is_no_topic(self):
        (self.results / "other").mkdir()
        (self.results / "other" / "half.toml").write_text("")
        self.refused("other/half.toml", "topics.toml")

    def test_superseded_needs_a_current_successor(self):
        self.write(status='"superseded"')
        self.refused("speed/half.toml", "superseded_by")
        self.write(superseded_by='"speed/half"')
        self.refused("speed/half.toml", "superseded_by", "no other status")
        self.write(status='"superseded"', superseded_by='"speed/gone"')
        self.refused("speed/half.toml", "speed/gone")
        self.write(status='"superseded"', superseded_by='"speed/half"')
        self.refused("speed/half.toml", "leads back")

    def test_older_measurements_are_a_line_with_their_successor(self):
        self.write()
        self.write("old", title='"Older half"', status='"superseded"', superseded_by='"speed/half"', rows='[["a", "0.5"]]')
        self.assertEqual(self.run_program().returncode, 0)
        page = (self.folder / "RESULTS.md").read_text()
        self.assertIn("[Older half](results/speed/old.toml), superseded by [speed/half](results/speed/half.toml)", page)
        self.assertNotIn("| a | 0.5 |", page)

    def test_two_current_answers(self):
        self.write()
        self.write("other")
        self.refused("question", "speed/half.toml")

    def test_negative_results_are_in_their_table(self):
        self.write(status='"negative"')
        self.assertEqual(self.run_program().returncode, 0)
        page = (self.folder / "RESULTS.md").read_text()
        self.assertIn("| [Half of memory](results/speed/half.toml) | 2026-11-30 | It is fast. |", page)
        self.assertIn("**Negative result:** It is fast.", page)

    def test_markdown_table(self):
        run = self.run_program("--from-markdown", "-", text="text\n\n| row | **rate** |\n|---|---:|\n| a \\| b | **1.50** |\n| | 2 |\n\nmore\n")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn('{ name = "rate", unit = "", counts = "" },', run.stdout)
        self.assertIn('["a | b", "1.50"],\n  ["", "2"],\n]', run.stdout)

    def test_markdown_without_a_table(self):
        run = self.run_program("--from-markdown", "-", text="no table\n")
        self.assertEqual(run.returncode, 2)
        self.assertIn("has no Markdown table", run.stderr)


class Decisions(unittest.TestCase):
    """The decisions of docs/decisions: their links lead to files, and the index lists each of them."""

    def test_links(self):
        folder = PROGRAM.parents[2] / "docs" / "decisions"
        index = (folder / "README.md").read_text()
        for path in folder.glob("*.md"):
            for link in re.findall(r"\]\(([^)#]+)", path.read_text()):
                self.assertTrue((folder / link).exists(), f"{path.name}: {link}")
            if path.name != "README.md":
                self.assertIn(f"({path.name})", index)


if __name__ == "__main__":
    unittest.main()
