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


def disk_rates(descriptions):
    return ", ".join(f"{disk_rate(of) / 1e9:.3g}" for of in descriptions) + " GB/s"
