// FortranLibrary.h: functions of flang's runtime that change nothing.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace tracekit {

/// Whether a function of this name is arithmetic, of numbers that it is given by value.
bool isFortranArithmetic(llvm::StringRef Name);

/// Whether it answers a question about a descriptor, an array's shape or a pointer's target say, of which it reads no
/// more than that.
bool isFortranInquiry(llvm::StringRef Name);

} // namespace tracekit
