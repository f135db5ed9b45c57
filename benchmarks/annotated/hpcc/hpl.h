/* In place of HPL's header and MPI's: what HPCC's STREAM and FFT use of them, for one process. */
#ifndef ONE_PROCESS_HPL_H
#define ONE_PROCESS_HPL_H
#include "mpi.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define HPL_MAX_PARAM 20
typedef struct { double thrsh; } HPL_T_test;
typedef int HPL_T_ORDER, HPL_T_FACT, HPL_T_TOP, HPL_T_SWAP, HPL_T_MACH;
typedef struct { int unused; } HPL_RuntimeData;
#define Mmin(a, b) ((a) < (b) ? (a) : (b))
#define Mmax(a, b) ((a) > (b) ? (a) : (b))
#endif
