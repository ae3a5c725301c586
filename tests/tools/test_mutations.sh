#!/bin/bash
# Tests the single changes that tools/mutate.py makes: operators, constants, returns and statements of
# code change; text, comments, macros and declarations do not.
set -euo pipefail
cd "$(dirname "$0")/../../tools"
python3 - <<'END'
import mutations


def expect(line, *wanted):
    assert mutations.changes(line) == list(wanted), (line, mutations.changes(line))


expect("    if (a < b) return;", "    if (a <= b) return;", "    if (!(a < b)) return;")
expect("    x = a + b;", "    x = a - b;", "")
expect("    total += f(y);", "    total -= f(y);", "")
expect("    free(memory);", "")
expect("    return count;", "    return 0;")
expect("    return 0;", "    return 1;")
expect("    use(&a, -b);", "")
expect('    say("a < b");', "")
expect("    int64_t end = begin;")
expect("    bool done = true;", "    bool done = false;")
expect("    f(a, /* 7 < 8 */ b);", "")

text = """/* a < b
 * c + d */
#define LESS(a, b) \\
    ((a) < (b))
static int count[3];
    float values[256]; /* The values of all codes. */
extern int table[4];
int f(int a) {
    return a + 1;
}"""
lines = [line for _, line in mutations.code_lines(text) if mutations.changes(line)]
assert lines == ["    return a + 1;"], lines

# With --quick, long tests do not run, except the tests that belong to the changed file.
from mutate_tests import order_tests

times = {"test_sol": 0.1, "sim_ptx_test_cuda_scaled_sm_100": 26, "emulated_test_matmul": 395, "test_bench": 31,
         "sim_ptx_test_cli_level_sm_90a": 12}


def quick_tests(name):
    return {test for group in order_tests(name, times, {}, True) for test in group}


assert quick_tests("src/cuda/host/tma_rows.c") == {"test_sol", "sim_ptx_test_cuda_scaled_sm_100"}
assert quick_tests("cli/bench_shapes.c") == {"test_sol", "test_bench"}
assert quick_tests("src/sol/units.c") == {"test_sol"}
assert quick_tests("cli/level_sum.c") == {"test_sol", "sim_ptx_test_cli_level_sm_90a"}

# The functions that a change of a line can affect: its own, or all of a file for a local table. They
# are not known for a table that other files may read, and for headers of GPU kernels.
import mutate_reach

text = """static const int table[] = {
    7,
};
const int shared = 8;
static int first(int a,
                 int b) {
    int c = table[a];

    return b + c;
}

int second(void) {
    return first(1, 2);
}"""
lines = text.split("\n")
for index, wanted in ((1, [5, 11]), (3, None), (4, [5, 11]), (6, [5]), (8, [5]), (12, [11])):
    assert mutate_reach.places("src/io/a.c", lines, index) == wanted, index
assert mutate_reach.places("cli/a.h", lines, 12) == [11]
assert mutate_reach.places("src/gpu/a.h", lines, 12) is None
changes = [("src/io/a.c", 1, "8"), ("src/io/a.c", 3, "9"), ("src/io/a.c", 12, ""), ("src/io/a.c", 12, "x")]
marked, numbered = mutate_reach.mark(changes, lambda name: text)
assert numbered == {0: ("src/io/a.c", 1), 2: ("src/io/a.c", 12)}, numbered
made = marked["src/io/a.c"].split("\n")
assert len(made) == len(lines) + 1
assert [line.count("mutate_reached(") for line in made if "mutate_reached(" in line] == [1, 1, 2], made

# Each change that tools/mutate-harmless.tsv lists must be one that the tool can make, in a line
# that still exists.
import mutate

for (path, before, after), reason in mutate.harmless().items():
    lines = [line for line in (mutate.ROOT / path).read_text().split("\n") if line.strip() == before]
    assert lines and reason, (path, before)
    made = {change.strip() for line in lines for change in mutations.changes(line)}
    assert after in made, (path, before, after)

# Each class of changes in that file has a member, and no class contains a change that tests must find.
excused, classes = mutate.harmless(), mutate.harmless_classes()
changes = [(str(path.relative_to(mutate.ROOT)), line.strip(), change.strip())
           for folder in ("src", "cli") for path in (mutate.ROOT / folder).rglob("*.[ch]")
           for _, line in mutations.code_lines(path.read_text()) for change in mutations.changes(line)]
for one in classes:
    assert one[3] and any(mutate.is_harmless(*change, {}, [one]) for change in changes), one
for change in (("src/cpu/a.c", "rows = prefetch_rows(a);", ""), ("cli/a.c", "x = calloc(2, sizeof *x);", "x = calloc(3, sizeof *x);"),
               ("cli/a.c", "prefetch(a);", "")):
    assert not mutate.is_harmless(*change, excused, classes), change
END
echo "mutations: all passed"
