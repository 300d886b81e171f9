"""Writes figures.json: data, and what scipy says of it. Beside it stands the test that holds busload to these figures.

    pip install scipy==1.17.1 && python3 figures.py
"""

import json
import pathlib

import numpy as np
import scipy
from scipy import stats

random = np.random.default_rng(20260101)


def data():
    """Milliseconds as kernels have them: each name with its samples, which are written with six decimals."""
    normal = lambda count, share: 1 + share * random.standard_normal(count)
    yield "five", normal(5, 0.01)
    yield "thirty", normal(30, 0.003)
    yield "thirty_one", normal(31, 0.003)
    yield "skewed", 0.01 + 0.001 * random.lognormal(0, 1, 100)
    yield "two_kinds", np.where(random.random(100) < 0.5, 1, 2) + 0.01 * random.standard_normal(100)
    yield "drift", 1 + np.arange(200) / 1000 + 0.002 * random.standard_normal(200)
    yield "steps", np.round(random.normal(0.0123, 0.0001, 60) * 31250) / 31250
    far = normal(40, 0.002)
    far[[3, 17]] = [2.5, 0.25]
    yield "far", far
    yield "many", normal(1000, 0.02)


def statistics(samples):
    low, high = np.percentile(samples, [25, 75])
    # The events that samples are timed by do not tell less than half a microsecond.
    reach = 3 * max(stats.iqr(samples), 0.0005)
    interval = stats.bootstrap(
        (samples,), np.median, confidence_level=0.95, method="percentile", n_resamples=100_000, batch=1000, rng=1
    ).confidence_interval
    return {
        "median_ms": np.median(samples),
        "min_ms": np.min(samples),
        "p5_ms": stats.scoreatpercentile(samples, 5),
        "p95_ms": stats.scoreatpercentile(samples, 95),
        "mad_ms": stats.median_abs_deviation(samples),
        "spread": stats.iqr(samples) / np.median(samples),
        "noise": stats.variation(samples, ddof=1),
        "interval_ms": [interval.low, interval.high],
        "outliers": np.flatnonzero((samples < low - reach) | (samples > high + reach)).tolist(),
    }


def stdrel(samples, least=30, max_noise=0.005):
    """After how many samples nvbench's rule of that name is met, and how."""
    noises = [stats.variation(samples[:count], ddof=1) for count in range(5, len(samples) + 1)]
    for count in range(least, len(samples) + 1):
        window = np.array(noises[: count - 4][-512:])
        if window[-1] < max_noise:
            return [count, "noise"]
        deviation = np.sqrt(np.sum((window - window[-1]) ** 2) / (len(window) - 1))
        if len(window) > 64 and count % 16 == 0 and deviation / window[-1] < 0.05:
            return [count, "steady-noise"]
    raise SystemExit("too few samples")


def entropy(samples, least=30):
    """The same of nvbench's rule of that name."""
    entropies = []
    for count in range(1, len(samples) + 1):
        entropies.append(stats.entropy(np.unique(samples[:count], return_counts=True)[1], base=2))
        if count < least or count % 2:
            continue
        window = entropies[-299:]
        line = stats.linregress(np.arange(len(window)), window)
        r2 = 1 if np.ptp(window) == 0 else line.rvalue**2
        if np.degrees(np.arctan(line.slope)) <= 0.048 and r2 >= 0.36:
            return [count, "entropy"]
    raise SystemExit("too few samples")


def sequences():
    """Each name with a rule and samples that meet it before they are over."""
    normal = lambda count, share: 1 + share * random.standard_normal(count)
    yield "calm", stdrel, normal(40, 0.002)
    yield "calmer", stdrel, np.concatenate([normal(40, 0.01), normal(1500, 0.001)])
    yield "noisy", stdrel, normal(1500, 0.03)
    yield "two_kinds", stdrel, np.where(random.random(1500) < 0.5, 1, 2)
    yield "steps", entropy, np.round(normal(2500, 0.01) * 200) / 200
    yield "fine_steps", entropy, np.round(normal(2500, 0.01) * 2000) / 2000
    yield "all_new", entropy, normal(2500, 0.01)


def written(samples):
    return np.array([float(f"{sample:.6f}") for sample in samples])


figures = {"scipy": scipy.__version__, "statistics": [], "rules": []}
for name, samples in data():
    samples = written(samples)
    figures["statistics"].append({"name": name, "samples_ms": samples.tolist(), **statistics(samples)})
for name, rule, samples in sequences():
    samples = written(samples)
    count, stopped = rule(samples)
    # What follows after it does not matter.
    kept = samples[: count + 1].tolist()
    figures["rules"].append({"name": name, "stop": rule.__name__, "count": count, "stopped": stopped, "samples_ms": kept})

lines = [json.dumps(part) for part in figures["statistics"]], [json.dumps(part) for part in figures["rules"]]
text = '{{"scipy": "{}",\n"statistics": [\n{}\n],\n"rules": [\n{}\n]}}\n'
out = pathlib.Path(__file__).with_name("figures.json")
out.write_text(text.format(scipy.__version__, *(",\n".join(part) for part in lines)))
