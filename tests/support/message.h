/* Declares a check of the library's error message. */
#ifndef BSMM_TEST_MESSAGE_H
#define BSMM_TEST_MESSAGE_H

/* Fails the test unless the last error message of this thread contains `part`. */
void expect_message(const char *part);

#endif
