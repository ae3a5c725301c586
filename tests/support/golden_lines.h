/* Declares comparisons with the files of tests/golden/choices. Such a file has one line for each
 * case of a test. A line has the name of the case, a tab, and what the library did. */
#ifndef BSMM_TEST_GOLDEN_LINES_H
#define BSMM_TEST_GOLDEN_LINES_H

/* Opens tests/golden/choices/NAME.txt. If BSMM_TEST_WRITE is set in the environment, the file is
 * written anew instead of being compared. */
void golden_lines_open(const char *name);

/* Compares the result of a case, `found`, with the line of the file for the case `name`. If they
 * differ, or if the file has no such line, it prints both and `about`, which describes the case. A
 * test may check a case several times, but the file has one line for it. */
void golden_lines_check(const char *name, const char *found, const char *about);

/* Closes the file of golden_lines_open. Fails the test if golden_lines_check found a case whose
 * line in the file differs. */
void golden_lines_close(void);

#endif
