// AllocatorPointers.h: calls through pointers that may lead to malloc and its like: libxml2's xmlMalloc, zlib's zalloc.
#pragma once

#include "llvm/IR/Function.h"

namespace tracekit {

/// Makes `pointer(n)` of what has the type of malloc, calloc, realloc or free `pointer == malloc ? malloc(n) :
/// pointer(n)`: nothing else in a trace says which function of a library such a call has reached, and so what it has
/// done. To be done before the function is described.
void nameAllocators(llvm::Function &F);

} // namespace tracekit
