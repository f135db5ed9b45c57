/* What pfstools' configuration would have said. */
#define likely(x) (x)
#define unlikely(x) (x)
