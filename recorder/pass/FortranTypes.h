// FortranTypes.h: derived types of Fortran, from the tables that flang writes for its runtime.
//
// flang 19 writes no debug information of derived types. For the runtime, though, it describes each in constants: a
// `derivedtype` (..E.dt.NAME) with its name and its table of `component`s, each with name, category, kind, rank and
// offset (the Fortran module __fortran_type_info). The LLVM type of the objects, ..TNAME, has the sizes.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"

namespace tracekit {

/// By the name of the LLVM type: the derived types that a module describes, as debug information would.
llvm::StringMap<const llvm::DICompositeType *> fortranTypes(const llvm::Module &M);

} // namespace tracekit
