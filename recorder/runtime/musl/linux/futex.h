/* Where the kernel's headers are not among musl's: what the runtime needs of this one. */
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
