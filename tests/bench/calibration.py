"""What tier-calibrate says of this machine, measured again and again: a disk that others share is not the same an hour later."""
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


def middle(descriptions):
    """Returns that of the descriptions whose disk is neither the fastest nor the slowest."""
    rate = statistics.median_low([disk_rate(of) for of in descriptions])
    return next(of for of in descriptions if disk_rate(of) == rate)


class Beside:
    """Descriptions of this machine before and after each of the runs that a table compares with virtual time: within minutes
    the disk is another one.

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

    def middle(self, row):
        """Returns that description beside the row's runs whose disk is in the middle."""
        return middle(self._of_row[row])


def disk_rates(descriptions):
    return ", ".join(f"{disk_rate(of) / 1e9:.3g}" for of in descriptions) + " GB/s"
