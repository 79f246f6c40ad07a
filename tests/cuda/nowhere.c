/* A library that is there when its user is linked, and not when that is loaded. */
int infeed_test_nowhere(void);
int infeed_test_nowhere(void) { return 0; }
