"""The rooms of bench/run and bench/compare.

plan.py         which cells there are: workload, parameters, contenders, for each size
programs.py     the programs that run cells, and what their subjects can
cell.py         one run of one cell
rounds.py       all cells of a group, interleaved; neighbours, progress
results.py      what the runs of a group come to: medians, ratios, one hash
statistic.py    medians, percentiles, ratios by round
environment.py  the machine, the compiler, the commit
table.py        the results as text and as markdown
records.py      the results as JSON and CSV
charts.py       the results as pictures, by gnuplot
targets.py      what libdue must reach
check.py        whether it does
comparing.py    what changed between two runs
main.py         the command line
"""
