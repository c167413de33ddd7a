"""What tier-calibrate says of this machine, measured again and again: a disk that others share is not the same an hour later,
and two cores of a virtual machine reach 35 GB/s of memory in one minute and 60 in the next."""
import statistics
import subprocess
import tomllib


def describe(calibrate, weights, description):
    """Measures this machine into a file, unless it is there. weights: what runs will read, since another file, just written, may
    come from a cache below the disk."""
    if not description.exists():
        subprocess.run([calibrate, "--quick", "-q", "--file", weights, "-o", description], check=True,
                       stdout=subprocess.DEVNULL)
    return description, tomllib.loads(description.read_text())


def disk_rate(described):
    return described[1]["flash"]["bytes_per_second"]


def medians(descriptions, description):
    """Writes and returns the description in which each number is the median of what the others say: they have the same lines."""
    def number(line):
        key, equals, rest = line.partition(" = ")
        value, remark, of = rest.partition("  # ")
        return (key + equals, float(value), remark + of) if equals and value.replace(".", "", 1).isdigit() else None

    lines = []
    for same in zip(*(path.read_text().splitlines() for path, _ in descriptions), strict=True):
        numbers = [number(line) for line in same]
        if all(numbers):
            lines.append(f"{numbers[0][0]}{statistics.median_low([of[1] for of in numbers]):.0f}{numbers[0][2]}")
        else:
            lines.append(same[0])
    description.write_text("\n".join(lines) + "\n")
    return description, tomllib.loads(description.read_text())


class Beside:
    """Descriptions of this machine before and after each of the runs that a table compares with virtual time: within minutes
    it is another one.

    look: measures the machine; it is given the number of the description.
    """

    def __init__(self, look):
        self._look = look
        self._of_row = {}
        self.all = [look(0)]

    def run(self, row, make):
        """Returns what make() does, a run of that row, and describes the machine after it."""
        made = make()
        self.all.append(self._look(len(self.all)))
        self._of_row.setdefault(row, []).extend(self.all[-2:])
        return made

    def medians(self, row, description):
        """Writes and returns the description whose numbers are the medians of those beside the row's runs."""
        return medians(self._of_row[row], description)


def disk_rates(descriptions):
    return ", ".join(f"{disk_rate(of) / 1e9:.3g}" for of in descriptions) + " GB/s"
